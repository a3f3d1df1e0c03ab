"""ApproveDraft: allows the draft's current content to be sent."""

from datetime import datetime

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import lock_draft, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.domain.draft import DraftKey, DraftView, approved, require_digest, require_draft, require_etag
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class ApproveDraft:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(
        self, call: Call[DraftView, Answer], *, draft_id: str, content_digest: str, etag: str, approver: str
    ) -> Answer:
        """Ignores an empty `content_digest` or `etag`; otherwise the draft must have it."""
        key = (call.organization_id, draft_id)
        return await self._ledger.once(
            call, lambda tx, now: self._approve(tx, now, key, content_digest, etag, approver)
        )

    async def _approve(
        self, tx: Transaction, now: datetime, key: DraftKey, content_digest: str, etag: str, approver: str
    ) -> DraftView:
        before = require_draft(await lock_draft(tx.connection, *key), key)
        require_etag(before, etag)
        require_digest(before, content_digest)
        draft = approved(before, approver=approver, now=now)
        if draft is not before:
            await save_draft(tx.connection, draft)
            await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
        return DraftView(draft=draft, jobs=await find_jobs(tx.connection, *key))
