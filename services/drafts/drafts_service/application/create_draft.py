"""CreateDraft and BatchCreateDrafts: store new drafts, which are not approved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from drafts_service.adapters.postgres.accounts import find_obstacles
from drafts_service.adapters.postgres.drafts import insert_drafts, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs_of
from drafts_service.application.content_check import ContentCheck
from drafts_service.domain.account import AccountKey, Obstacle
from drafts_service.domain.content import Body, checked_content
from drafts_service.domain.draft import (
    NO_PLACEMENT,
    Draft,
    DraftKey,
    DraftView,
    GivenDraft,
    Placement,
    checked_placement,
)
from drafts_service.domain.post_job import fold
from drafts_service.domain.target import Target, checked_targets
from drafts_service.wire import contents, events
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
    id: str
    body: Body
    targets: tuple[Target, ...]
    placement: Placement
    traceparent: str


class DraftCreation:
    """Creates drafts in the caller's transaction."""

    def __init__(self, *, ids: IdSource, outbox: Outbox) -> None:
        self._ids = ids
        self._outbox = outbox

    async def __call__(self, tx: Transaction, new: Sequence[NewDraft], now: datetime) -> Sequence[DraftView | Fault]:
        refusals = [_refusal(each, now) for each in new]
        wanted = [each for each, refusal in zip(new, refusals, strict=True) if refusal is None]
        created = iter(await self._create(tx, wanted, now) if wanted else ())
        return [refusal or next(created) for refusal in refusals]

    async def _create(self, tx: Transaction, new: Sequence[NewDraft], now: datetime) -> Sequence[DraftView | Fault]:
        drafts = [self._draft(each, now) for each in new]
        first = {draft.key: draft for draft in reversed(drafts)}  # of those with one id
        given = {(each.organization_id, each.id) for each in new if each.id}
        inserted = await insert_drafts(tx, first.values(), given=given)
        earlier = await _fold_earlier_jobs(tx, [first[key] for key in given & inserted])
        outcomes: list[DraftView | Fault] = []
        announcements: list[Announcement] = []
        for each, draft in zip(new, drafts, strict=True):
            if draft.key in inserted and draft is first[draft.key]:
                outcomes.append(earlier.get(draft.key) or DraftView(draft=draft, jobs=()))
                announcements.append(events.draft_saved(draft, each.traceparent))
            else:
                outcomes.append(_exists(draft.id))
        await self._outbox.append(tx, announcements, now=now)
        return outcomes

    def _draft(self, new: NewDraft, now: datetime) -> Draft:
        return Draft(
            organization_id=new.organization_id,
            id=new.id or self._ids.new(),
            body=new.body,
            targets=new.targets,
            placement=new.placement,
            create_time=now,
            update_time=now,
        )


class CreateDraft:
    """Carries out calls that arrive at the same time together."""

    def __init__(self, *, creation: DraftCreation, ledger: RequestLedger, check: ContentCheck) -> None:
        self._creation = creation
        self._check = check
        self._together = Together(ledger, self._create)

    async def __call__(self, call: Call[DraftView, Answer], given: GivenDraft) -> Answer:
        return await self._together(call, await _checked(self._check, call.organization_id, given))

    async def _create(self, tx: Transaction, new: Sequence[NewDraft], now: datetime) -> Sequence[DraftView | Fault]:
        outcomes = await self._creation(tx, new, now)
        created = [outcome.draft for outcome in outcomes if isinstance(outcome, DraftView)]
        known = await find_obstacles(tx, {key for draft in created for key in draft.accounts})
        return [outcome if isinstance(outcome, Fault) else _with_obstacles(outcome, known) for outcome in outcomes]


class BatchCreateDrafts:
    """Looks for the obstacles of accounts only to check contents: the answer does not show targets."""

    def __init__(self, *, creation: DraftCreation, ledger: RequestLedger, check: ContentCheck) -> None:
        self._creation = creation
        self._ledger = ledger
        self._check = check

    async def __call__(self, call: Call[Sequence[DraftView | Fault], Answer], given: Sequence[GivenDraft]) -> Answer:
        checked = [await self._checked_or_refused(call.organization_id, each) for each in given]
        return await self._ledger.once(call, lambda tx, now: self._create(tx, checked, now))

    async def _create(
        self, tx: Transaction, checked: Sequence[NewDraft | Fault], now: datetime
    ) -> Sequence[DraftView | Fault]:
        new = [each for each in checked if isinstance(each, NewDraft)]
        outcomes = iter(await self._creation(tx, new, now) if new else ())
        return [next(outcomes) if isinstance(each, NewDraft) else each for each in checked]

    async def _checked_or_refused(self, organization_id: str, given: GivenDraft) -> NewDraft | Fault:
        try:
            return await _checked(self._check, organization_id, given)
        except Fault as refusal:
            return refusal


def _with_obstacles(view: DraftView, known: Mapping[AccountKey, Obstacle]) -> DraftView:
    obstacles = {account[1]: known[account] for account in view.draft.accounts if account in known}
    return replace(view, draft=replace(view.draft, obstacles=obstacles))


async def _checked(check: ContentCheck, organization_id: str, given: GivenDraft) -> NewDraft:
    targets = checked_targets(given.targets)
    content = await check(organization_id, checked_content(given.content, targets), targets)
    return NewDraft(
        organization_id=organization_id,
        id=given.id,
        body=contents.encoded_body(content),
        targets=targets,
        placement=given.placement,
        traceparent=current_traceparent(),
    )


def _refusal(new: NewDraft, now: datetime) -> Fault | None:
    try:
        checked_placement(new.placement, before=NO_PLACEMENT, now=now)
    except Fault as refusal:
        return refusal
    return None


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
