"""UpdateDraft: new content or targets; after its OK no older text starts, and none is out.

A draft of which a text may be in flight is changed in three parts: the intention is recorded and nothing else,
Publisher is asked to withdraw what is older, and only its answer decides whether the change is made. A call that breaks
off leaves the draft as it was: a repeat begins at the beginning, and `complete_withdrawals` ends the intention of one
that is not repeated.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.application.accounts import Accounts
from drafts_service.application.withdrawal import Publisher, keep
from drafts_service.domain.account import Obstacles
from drafts_service.domain.answer import Answer
from drafts_service.domain.content import checked_content
from drafts_service.domain.draft import (
    Change,
    Draft,
    edited,
    found,
    require_changeable,
    require_etag,
    withdrawing,
)
from drafts_service.domain.post_job import PostJob, fold, latest
from drafts_service.domain.target import checked_targets
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Fault, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

INTENDED = declare("drafts.update.intended")
WITHDRAWN = declare("drafts.update.withdrawn")

_ROUNDS = 3
"""Each but the first is for an edit or an approval that came in between."""
_RETRY_AFTER = timedelta(seconds=1)
_ANNOUNCED_WITHIN = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between questions while Publisher has not heard of the last revision: an event takes some 50 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    key: RequestKey
    draft_id: str
    etag: str
    change: Change
    obstacles: Obstacles  # of the accounts that it names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """Publisher must withdraw the revisions below this one before the edit can be made."""

    below: int


_Step = wire.UpdateDraftResponse | Fault | _Ask


class UpdateDraft:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        outbox: Outbox,
        publisher: Publisher,
        accounts: Accounts,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._publisher = publisher
        self._accounts = accounts

    async def __call__(self, key: RequestKey, *, draft_id: str, etag: str, change: Change) -> wire.UpdateDraftResponse:
        """An empty `etag` is no precondition."""
        wanted = {target.social_account_id for target in change.targets or ()}
        obstacles = await self._accounts.obstacles(key.organization_id, wanted) if wanted else {}
        edit = _Edit(key=key, draft_id=draft_id, etag=etag, change=change, obstacles=obstacles)
        step = await self._step(edit, None)
        for _ in range(_ROUNDS):
            if not isinstance(step, _Ask):
                break
            await failpoint(INTENDED)
            answer = await self._withdrawn(edit, step.below)
            await failpoint(WITHDRAWN)
            step = await self._step(edit, answer)
        match step:
            case wire.UpdateDraftResponse():
                return step
            case _Ask():
                raise _pending(draft_id, step.below)
            case Fault():
                raise step
            case _:
                assert_never(step)

    async def _step(self, edit: _Edit, answer: Answer | None) -> _Step:
        return await self._database.run(lambda tx: self._try(tx, edit, answer))

    async def _try(self, tx: Transaction, edit: _Edit, answer: Answer | None) -> _Step:
        """Makes the edit, if Publisher's answer covers the draft as it is now; else says what is to be asked."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, edit.key, now=now)
        if past and past.response is not None:
            return wire.UpdateDraftResponse.FromString(past.response)
        before = found(await store.lock(tx.connection, edit.key.organization_id, edit.draft_id), edit.draft_id)
        jobs = await store.jobs(tx.connection, before.organization_id, before.id)
        try:
            after = _after(before, jobs, edit, answer, now)
        except Fault as refusal:
            if answer is None:
                raise
            await keep(tx, before, jobs, answer, outbox=self._outbox, now=now)
            return refusal
        is_change = after.revision > before.revision
        # The text that stays may be out; an older one may not.
        matters = before.may_be_out if is_change else before.exposed
        if matters and (answer is None or answer.below < after.revision):
            if is_change:
                await store.save(tx.connection, withdrawing(before, below=after.revision, now=now))
            return _Ask(below=after.revision)
        in_flight = answer.in_flight if answer else ()
        if is_change:
            after = replace(after, exposed=bool(in_flight), progress=fold(after.targets, jobs))
            await store.save(tx.connection, after)
            await self._outbox.append(tx, [wire.draft_saved(after)], now=now)
        response = wire.UpdateDraftResponse(draft=wire.shown(after, jobs), in_flight_post_job_ids=in_flight)
        await self._ledger.answer(tx, edit.key, response.SerializeToString())
        return response

    async def _withdrawn(self, edit: _Edit, below: int) -> Answer:
        try:
            for pause in _ANNOUNCED_WITHIN:
                if answer := await self._publisher.withdraw(edit.key.organization_id, edit.draft_id, below=below):
                    return answer
                await asyncio.sleep(pause)
        except Unavailable as away:
            raise _pending(edit.draft_id, below, away.retry_after) from away
        raise _pending(edit.draft_id, below)


def _after(before: Draft, jobs: Sequence[PostJob], edit: _Edit, answer: Answer | None, now: datetime) -> Draft:
    """The draft with the change; of the same revision when that changes nothing. Raises the fault that forbids it."""
    require_changeable(before, latest([*jobs, *answer.published]) if answer else jobs)
    require_etag(before, edit.etag)
    targets = before.targets if edit.change.targets is None else checked_targets(edit.change.targets)
    content = checked_content(edit.change.of(wire.decoded_body(before.body)), targets)
    known = replace(before, obstacles={**before.obstacles, **edit.obstacles}) if edit.obstacles else before
    return edited(known, body=wire.encoded_body(content), targets=targets, now=now)


def _pending(draft_id: str, below: int, retry_after: timedelta | None = None) -> Unavailable:
    return Unavailable(
        "WITHDRAW_PENDING",
        "the older text could not be withdrawn yet, so the draft is as it was; repeat the request",
        metadata={"draft_id": draft_id, "revision": str(below)},
        retry_after=retry_after or _RETRY_AFTER,
    )
