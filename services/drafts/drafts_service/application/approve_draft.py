"""ApproveDraft: allows the draft's present content to go out."""

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import lock_draft, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.domain.draft import approved, require_digest, require_draft, require_etag
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class ApproveDraft:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(
        self, key: RequestKey, *, draft_id: str, content_digest: str, etag: str, approver: str
    ) -> wire.ApproveDraftResponse:
        """Ignores an empty `content_digest` or `etag`; otherwise the draft must have it."""
        return await self._database.run(lambda tx: self._approve(tx, key, draft_id, content_digest, etag, approver))

    async def _approve(
        self, tx: Transaction, key: RequestKey, draft_id: str, content_digest: str, etag: str, approver: str
    ) -> wire.ApproveDraftResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.ApproveDraftResponse.FromString(past.response)
        before = require_draft(await lock_draft(tx.connection, key.organization_id, draft_id), draft_id)
        require_etag(before, etag)
        require_digest(before, content_digest)
        draft = approved(before, approver=approver, now=now)
        if draft is not before:
            await save_draft(tx.connection, draft)
            await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
        jobs = await find_jobs(tx.connection, key.organization_id, draft_id)
        response = wire.ApproveDraftResponse(draft=wire.draft_message(draft, jobs))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
