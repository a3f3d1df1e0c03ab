"""UpdateDraft: new content or targets; after its answer no older text starts.

When an older text may be on its way the change is one intention with three parts: it is recorded, Publisher is asked to
withdraw what is older, the answer is recorded. A call that breaks off in between is completed by repeating it, and by
the loop of `complete_withdrawals`.
"""

from dataclasses import dataclass
from datetime import timedelta

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.application.withdrawal import Publisher
from drafts_service.domain.content import checked_content
from drafts_service.domain.draft import Change, edited, found, require_changeable, require_etag
from drafts_service.domain.target import checked_targets
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

CHANGED = declare("drafts.update.changed")
WITHDRAWN = declare("drafts.update.withdrawn")

_RETRY_AFTER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changed:
    """The answer, but for what Publisher says, if it has to be asked."""

    response: wire.UpdateDraftResponse
    is_complete: bool


class UpdateDraft:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        outbox: Outbox,
        publisher: Publisher,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._publisher = publisher

    async def __call__(self, key: RequestKey, *, draft_id: str, etag: str, change: Change) -> wire.UpdateDraftResponse:
        """An empty `etag` is no precondition."""
        changed = await self._database.run(lambda tx: self._change(tx, key, draft_id, etag, change))
        if changed.is_complete:
            return changed.response
        await failpoint(CHANGED)
        below = changed.response.draft.revision
        in_flight = await self._withdraw(key.organization_id, draft_id, below)
        await failpoint(WITHDRAWN)
        changed.response.in_flight_post_job_ids.extend(in_flight)
        return await self._database.run(lambda tx: self._complete(tx, key, draft_id, changed.response))

    async def _change(self, tx: Transaction, key: RequestKey, draft_id: str, etag: str, change: Change) -> _Changed:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return _Changed(response=wire.UpdateDraftResponse.FromString(past.response), is_complete=True)
        if past and past.intention is not None:
            return _Changed(response=wire.UpdateDraftResponse.FromString(past.intention), is_complete=False)
        before = found(await store.lock(tx.connection, key.organization_id, draft_id), draft_id)
        require_etag(before, etag)
        jobs = await store.jobs(tx.connection, key.organization_id, draft_id)
        require_changeable(before, jobs)
        targets = before.targets if change.targets is None else checked_targets(change.targets)
        content = checked_content(change.of(wire.decoded_body(before.body)), targets)
        draft = edited(before, body=wire.encoded_body(content), targets=targets, now=now)
        if draft is not before:
            await store.save(tx.connection, draft)
            await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
        response = wire.UpdateDraftResponse(draft=wire.shown(draft, jobs))
        # A change that changes nothing still owes its caller a withdrawal that an earlier one left open.
        if draft.withdrawal is None:
            await self._ledger.answer(tx, key, response.SerializeToString())
        else:
            await self._ledger.intend(tx, key, response.SerializeToString())
        return _Changed(response=response, is_complete=draft.withdrawal is None)

    async def _withdraw(self, organization_id: str, draft_id: str, below: int) -> list[str]:
        try:
            return await self._publisher.withdraw(organization_id, draft_id, below=below)
        except Unavailable as away:
            raise Unavailable(
                "WITHDRAW_PENDING",
                "the change is kept, but it is not sure yet that no older text goes out; repeat the request",
                metadata={"draft_id": draft_id, "revision": str(below)},
                retry_after=away.retry_after or _RETRY_AFTER,
            ) from away

    async def _complete(
        self, tx: Transaction, key: RequestKey, draft_id: str, response: wire.UpdateDraftResponse
    ) -> wire.UpdateDraftResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:  # the same call, made twice at a time: one answer
            return wire.UpdateDraftResponse.FromString(past.response)
        await store.withdrawn(tx.connection, key.organization_id, draft_id, below=response.draft.revision)
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
