"""CreateDraft: stores new drafts, which are not approved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import insert_drafts, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs_of
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import Obstacles
from drafts_service.domain.content import Body, Content, checked_content
from drafts_service.domain.draft import Draft, DraftKey, DraftView
from drafts_service.domain.post_job import fold
from drafts_service.domain.target import Target, checked_targets
from servicekit.faults import AlreadyExists, Fault
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Announcement, Outbox, current_traceparent
from servicekit.pg.together import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDraft:
    """A valid draft that is to be created."""

    organization_id: str
    draft_id: str  # it gets one if this is empty
    body: Body
    targets: tuple[Target, ...]
    obstacles: Obstacles
    traceparent: str


class CreateDraft:
    """Calls that arrive at the same time are carried out together."""

    def __init__(self, *, ids: IdSource, ledger: RequestLedger, outbox: Outbox, obstacles: AccountObstacles) -> None:
        self._ids = ids
        self._outbox = outbox
        self._obstacles = obstacles
        self._together = Together(ledger, self._create)

    async def __call__(
        self, call: Call[DraftView, Answer], *, draft_id: str, content: Content, targets: tuple[Target, ...]
    ) -> Answer:
        """Creates the draft; it gets an id if `draft_id` is empty."""
        targets = checked_targets(targets)
        body = wire.encoded_body(checked_content(content, targets))
        accounts = {target.social_account_id for target in targets}
        new = NewDraft(
            organization_id=call.organization_id,
            draft_id=draft_id,
            body=body,
            targets=targets,
            obstacles=await self._obstacles.find(call.organization_id, accounts),
            traceparent=current_traceparent(),
        )
        return await self._together(call, new)

    async def _create(self, tx: Transaction, asked: Sequence[NewDraft], now: datetime) -> Sequence[DraftView | Fault]:
        drafts = [self._draft(new, now) for new in asked]
        first = {draft.key: draft for draft in reversed(drafts)}  # of those with one id
        given = {(new.organization_id, new.draft_id) for new in asked if new.draft_id}
        inserted = await insert_drafts(tx, first.values(), given=given)
        earlier = await _fold_earlier_jobs(tx, [first[key] for key in given & inserted])
        outcomes: list[DraftView | Fault] = []
        announcements: list[Announcement] = []
        for new, draft in zip(asked, drafts, strict=True):
            if draft.key in inserted and draft is first[draft.key]:
                outcomes.append(earlier.get(draft.key) or DraftView(draft=draft, jobs=()))
                announcements.append(wire.draft_saved(draft, new.traceparent))
            else:
                outcomes.append(_exists(draft.id))
        await self._outbox.append(tx, announcements, now=now)
        return outcomes

    def _draft(self, new: NewDraft, now: datetime) -> Draft:
        return Draft(
            organization_id=new.organization_id,
            id=new.draft_id or self._ids.new(),
            body=new.body,
            targets=new.targets,
            create_time=now,
            update_time=now,
            obstacles=new.obstacles,
        )


async def _fold_earlier_jobs(tx: Transaction, drafts: Sequence[Draft]) -> dict[DraftKey, DraftView]:
    """Folds jobs older than their draft: after a restore of this database, a client may create a draft again."""
    views: dict[DraftKey, DraftView] = {}
    jobs = await find_jobs_of(tx, [draft.key for draft in drafts]) if drafts else {}
    for draft in drafts:
        if found := jobs.get(draft.key):
            folded = replace(draft, folded=fold(draft.targets, found))
            await save_draft(tx.connection, folded)
            views[draft.key] = DraftView(draft=folded, jobs=found)
    return views


def _exists(draft_id: str) -> AlreadyExists:
    return AlreadyExists("DRAFT_EXISTS", "a draft with this id exists", metadata={"draft_id": draft_id})
