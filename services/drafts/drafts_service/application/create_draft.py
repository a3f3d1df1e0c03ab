"""CreateDraft: stores a new draft, which is not approved."""

from datetime import datetime

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import insert_draft, lock_absent_drafts
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import Obstacles
from drafts_service.domain.content import Body, Content, checked_content
from drafts_service.domain.draft import Draft, DraftKey, DraftView
from drafts_service.domain.post_job import PostJob, fold
from drafts_service.domain.target import Target, checked_targets
from servicekit.faults import AlreadyExists
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class CreateDraft:
    def __init__(self, *, ids: IdSource, ledger: RequestLedger, outbox: Outbox, obstacles: AccountObstacles) -> None:
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._obstacles = obstacles

    async def __call__(
        self, call: Call[DraftView, Answer], *, draft_id: str, content: Content, targets: tuple[Target, ...]
    ) -> Answer:
        """Creates the draft; it gets an id if `draft_id` is empty."""
        key = (call.organization_id, draft_id)
        targets = checked_targets(targets)
        body = wire.encoded_body(checked_content(content, targets))
        accounts = {target.social_account_id for target in targets}
        obstacles = await self._obstacles.find(call.organization_id, accounts)
        return await self._ledger.once(call, lambda tx, now: self._create(tx, now, key, body, targets, obstacles))

    async def _create(
        self,
        tx: Transaction,
        now: datetime,
        key: DraftKey,
        body: Body,
        targets: tuple[Target, ...],
        obstacles: Obstacles,
    ) -> DraftView:
        organization_id, draft_id = key
        jobs = await self._earlier_jobs(tx, key) if draft_id else []
        draft = Draft(
            organization_id=organization_id,
            id=draft_id or self._ids.new(),
            body=body,
            targets=targets,
            create_time=now,
            update_time=now,
            folded=fold(targets, jobs),
            obstacles=obstacles,
        )
        if not await insert_draft(tx.connection, draft):
            raise AlreadyExists("DRAFT_EXISTS", "a draft with this id exists", metadata={"draft_id": draft.id})
        await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
        return DraftView(draft=draft, jobs=jobs)

    async def _earlier_jobs(self, tx: Transaction, key: DraftKey) -> list[PostJob]:
        """Finds jobs older than their draft: after a restore of this database, a client may create a draft again."""
        await lock_absent_drafts(tx.connection, [key])
        return await find_jobs(tx.connection, *key)
