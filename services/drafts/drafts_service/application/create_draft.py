"""CreateDraft: stores a new draft, which is not approved."""

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import insert_draft, lock_absent_drafts
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import Obstacles
from drafts_service.domain.content import Body, Content, checked_content
from drafts_service.domain.draft import Draft
from drafts_service.domain.post_job import PostJob, fold
from drafts_service.domain.target import Target, checked_targets
from servicekit.faults import AlreadyExists
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class CreateDraft:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ids: IdSource,
        ledger: RequestLedger,
        outbox: Outbox,
        obstacles: AccountObstacles,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._obstacles = obstacles

    async def __call__(
        self, key: RequestKey, *, draft_id: str, content: Content, targets: tuple[Target, ...]
    ) -> wire.CreateDraftResponse:
        """Makes an id if `draft_id` is empty."""
        targets = checked_targets(targets)
        body = wire.encoded_body(checked_content(content, targets))
        obstacles = await self._obstacles.find(key.organization_id, {target.social_account_id for target in targets})
        return await self._database.run(lambda tx: self._create(tx, key, draft_id, body, targets, obstacles))

    async def _create(
        self,
        tx: Transaction,
        key: RequestKey,
        draft_id: str,
        body: Body,
        targets: tuple[Target, ...],
        obstacles: Obstacles,
    ) -> wire.CreateDraftResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.CreateDraftResponse.FromString(past.response)
        jobs = await self._jobs_before(tx, key.organization_id, draft_id)
        draft = Draft(
            organization_id=key.organization_id,
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
        response = wire.CreateDraftResponse(draft=wire.draft_message(draft, jobs))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response

    async def _jobs_before(self, tx: Transaction, organization_id: str, draft_id: str) -> list[PostJob]:
        """Finds jobs older than their draft: after a restore of this database, a client may create a draft again."""
        if not draft_id:
            return []
        await lock_absent_drafts(tx.connection, [(organization_id, draft_id)])
        return await find_jobs(tx.connection, organization_id, draft_id)
