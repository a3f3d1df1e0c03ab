"""ApproveDraft: the content as it is now may go out."""

from dataclasses import dataclass

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.application.accounts import Accounts
from drafts_service.domain.account import Obstacles
from drafts_service.domain.draft import approved, found, require_digest, require_etag
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approval:
    draft_id: str
    content_digest: str
    etag: str
    approver: str


class ApproveDraft:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox, accounts: Accounts
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._accounts = accounts

    async def __call__(
        self, key: RequestKey, *, draft_id: str, content_digest: str, etag: str, approver: str
    ) -> wire.ApproveDraftResponse:
        """An empty `content_digest` or `etag` is no precondition."""
        obstacles = await self._accounts.obstacles_of_draft(key.organization_id, draft_id)
        approval = _Approval(draft_id=draft_id, content_digest=content_digest, etag=etag, approver=approver)
        return await self._database.run(lambda tx: self._approve(tx, key, approval, obstacles))

    async def _approve(
        self, tx: Transaction, key: RequestKey, wanted: _Approval, obstacles: Obstacles
    ) -> wire.ApproveDraftResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.ApproveDraftResponse.FromString(past.response)
        before = found(await store.lock(tx.connection, key.organization_id, wanted.draft_id), wanted.draft_id)
        require_etag(before, wanted.etag)
        require_digest(before, wanted.content_digest)
        draft = approved(before, approver=wanted.approver, now=now)
        if draft is not before:
            await store.save(tx.connection, draft)
            await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
        jobs = await store.jobs(tx.connection, key.organization_id, draft.id)
        response = wire.ApproveDraftResponse(draft=wire.shown(draft, jobs, obstacles))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
