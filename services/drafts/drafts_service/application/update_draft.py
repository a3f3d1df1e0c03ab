"""UpdateDraft: changes a draft. After OK no older text is sent; the response names jobs in flight.

A draft whose text may be in flight is changed in three steps: record the withdrawal and nothing else, ask Publisher to
withdraw the older revisions, and make the change if its answer allows it. A call that dies in between leaves the draft
as it was: a repeated request starts over, and `complete_withdrawals` ends a withdrawal that nobody repeats.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, assert_never

from drafts_service.adapters.postgres.accounts import find_accounts
from drafts_service.adapters.postgres.drafts import lock_draft, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.content_check import ContentCheck
from drafts_service.application.give_up_edit import ContentWithdrawer, give_up_edit
from drafts_service.domain.account import AccountsUnchecked, require_learned
from drafts_service.domain.channel_rules import Rules, require_within_rules
from drafts_service.domain.content import checked_content
from drafts_service.domain.draft import (
    Change,
    Draft,
    DraftKey,
    UpdatedDraft,
    checked_placement,
    edited,
    require_changeable,
    require_draft,
    require_etag,
    withdrawing,
)
from drafts_service.domain.media import Inspected, pinned, require_usable, with_facts_of
from drafts_service.domain.post_job import PostJob, fold, latest
from drafts_service.domain.target import checked_targets
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire import contents, events
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Fault, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox

INTENDED = declare("drafts.update.intended")
WITHDRAWN = declare("drafts.update.withdrawn")

_ROUNDS = 3
"""The most rounds of asking Publisher; each but the first follows an edit or an approval that came in between."""
_RETRY_AFTER = timedelta(seconds=1)
_ANNOUNCED_WITHIN = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between requests while Publisher has not received the last revision: an event takes about 50 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    key: DraftKey
    etag: str
    change: Change
    rules: Rules | None  # those of a content; None if they are not known
    is_learned: bool  # the accounts have been asked for; one that is still unknown is not checked
    media: Inspected  # of the media that the change names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Withdraw:
    """Publisher must withdraw the revisions below `below` before the edit can be made."""

    below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered(Generic[Answer]):
    answer: Answer


_Step = _Answered[Answer] | Fault | _Withdraw
"""The end of a transaction: the edit is made, or refused for good, or has to wait for a withdrawal."""


class UpdateDraft:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        outbox: Outbox,
        publisher: ContentWithdrawer,
        obstacles: AccountObstacles,
        check: ContentCheck,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._publisher = publisher
        self._obstacles = obstacles
        self._check = check

    async def __call__(self, call: Call[UpdatedDraft, Answer], *, draft_id: str, etag: str, change: Change) -> Answer:
        """Ignores an empty `etag`; otherwise the draft must have it."""
        named = {target.social_account_id for target in change.targets or ()}
        await self._obstacles.learn(call.organization_id, named)
        edit = _Edit(
            key=(call.organization_id, draft_id),
            etag=etag,
            change=change,
            rules=await self._check.rules() if change.is_of_text else None,
            is_learned=change.targets is not None,
            media=await self._check.inspect(
                call.organization_id, list(dict.fromkeys(each.url for each in change.named_media))
            ),
        )
        try:
            step = await self._attempt(call, edit, None)
        except AccountsUnchecked as unchecked:
            await self._check.learn(call.organization_id, unchecked.targets)
            edit = replace(edit, is_learned=True)
            step = await self._attempt(call, edit, None)
        for _ in range(_ROUNDS):
            if not isinstance(step, _Withdraw):
                break
            await failpoint(INTENDED)
            answer = await self._withdraw(edit.key, step.below)
            await failpoint(WITHDRAWN)
            step = await self._attempt(call, edit, answer)
        match step:
            case _Answered(answer=response):
                return response
            case _Withdraw():
                raise _pending(edit.key, step.below)
            case Fault():
                raise step
            case _:
                assert_never(step)

    async def _attempt(
        self, call: Call[UpdatedDraft, Answer], edit: _Edit, answer: WithdrawalAnswer | None
    ) -> _Step[Answer]:
        return await self._database.run(lambda tx: self._make(tx, call, edit, answer))

    async def _make(
        self, tx: Transaction, call: Call[UpdatedDraft, Answer], edit: _Edit, answer: WithdrawalAnswer | None
    ) -> _Step[Answer]:
        """Makes the edit if Publisher's answer covers the draft as it is now; else records what has to be withdrawn."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return _Answered(answer=past)
        before = await _with_accounts(tx, require_draft(await lock_draft(tx, edit.key), edit.key), edit.change)
        jobs = await find_jobs(tx, edit.key)
        try:
            after = _after(before, jobs, edit, answer, now)
        except Fault as refusal:
            if answer is None:
                raise
            await give_up_edit(tx, before, jobs, answer, outbox=self._outbox, now=now)
            return refusal
        is_change, is_rewritten = after.version > before.version, after.revision > before.revision
        if _must_ask(before, edit.change, is_rewritten=is_rewritten) and (
            answer is None or answer.below < after.revision
        ):
            if is_rewritten:
                await save_draft(tx.connection, withdrawing(before, below=after.revision, now=now))
            return _Withdraw(below=after.revision)
        in_flight = answer.in_flight if answer else ()
        if is_change:
            if is_rewritten:
                after = replace(after, exposed=bool(in_flight), folded=fold(after.targets, jobs))
            await save_draft(tx.connection, after)
            await self._outbox.append(tx, [events.draft_saved(after)], now=now)
        updated = UpdatedDraft(draft=after, jobs=jobs, in_flight=in_flight)
        return _Answered(answer=await self._ledger.answer(tx, call, updated))

    async def _withdraw(self, key: DraftKey, below: int) -> WithdrawalAnswer:
        try:
            for pause in _ANNOUNCED_WITHIN:
                if answer := await self._publisher.withdraw(*key, below=below):
                    return answer
                await asyncio.sleep(pause)
        except Unavailable as unanswered:
            raise _pending(key, below, unanswered.retry_after) from unanswered
        raise _pending(key, below)


async def _with_accounts(tx: Transaction, draft: Draft, change: Change) -> Draft:
    """Returns the draft with what is known of the accounts that the change names."""
    named = {target.social_account_id for target in change.targets or ()} - draft.obstacles.keys()
    if not named:
        return draft
    found = await find_accounts(tx, {(draft.organization_id, each) for each in named})
    obstacles = {key[1]: account.obstacle for key, account in found.items()}
    providers = {key[1]: account.provider for key, account in found.items()}
    return replace(draft, obstacles={**draft.obstacles, **obstacles}, providers={**draft.providers, **providers})


def _after(
    before: Draft,
    jobs: Sequence[PostJob],
    edit: _Edit,
    answer: WithdrawalAnswer | None,
    now: datetime,
) -> Draft:
    """Returns the changed draft, at the same version if nothing changes; raises the fault that forbids the change."""
    require_changeable(before, latest([*jobs, *answer.published]) if answer else jobs)
    require_etag(before, edit.etag)
    targets = before.targets if edit.change.targets is None else checked_targets(edit.change.targets)
    known = contents.decoded_body(before.body)
    content = checked_content(edit.change.applied_to(known), targets)
    require_usable(content, edit.media)
    content = with_facts_of(pinned(content, edit.media), known)
    if edit.rules:
        # A target that comes after Publisher has been asked to withdraw was checked by the edit that brought it.
        if not edit.is_learned and answer is None:
            require_learned(targets, before.obstacles, before.providers)
        require_within_rules(content, targets, before.providers, edit.rules)
    placement = checked_placement(edit.change.applied_to_placement(before.placement), before=before.placement, now=now)
    return edited(before, body=contents.encoded_body(content), targets=targets, placement=placement, now=now)


def _must_ask(before: Draft, change: Change, *, is_rewritten: bool) -> bool:
    """Returns whether Publisher has to withdraw texts: never for another time, category or brand alone.

    An edit of the text that changes nothing replaces only older texts: the current one may be out.
    """
    return before.may_be_out if is_rewritten else change.is_of_text and before.exposed


def _pending(key: DraftKey, below: int, retry_after: timedelta | None = None) -> Unavailable:
    return Unavailable(
        "WITHDRAW_PENDING",
        "the older text has not been withdrawn yet, so the draft is unchanged; repeat the request",
        metadata={"draft_id": key[1], "revision": str(below)},
        retry_after=retry_after or _RETRY_AFTER,
    )
