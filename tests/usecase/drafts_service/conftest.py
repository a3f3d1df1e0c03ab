import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft, BatchApproveDrafts, DraftApproval
from drafts_service.application.content_check import ContentCheck
from drafts_service.application.create_draft import BatchCreateDrafts, CreateDraft, DraftCreation
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.known_rules import KnownRules
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.account import Account
from drafts_service.domain.channel_rules import Rules
from drafts_service.domain.content import Content
from drafts_service.domain.draft import NO_PLACEMENT, GivenApproval, GivenDraft, Placement
from drafts_service.domain.media import Inspected
from drafts_service.domain.post_job import JobState, PostJob, PostJobEvent
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire import drafts
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.faults import Unavailable
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import RequestLedger, mutation
from servicekit.pg.outbox import Outbox
from testkit.clocks import FrozenClock

ADraft = Callable[..., Awaitable[Draft]]
Get = Callable[..., Awaitable[Draft]]
Create = Callable[..., Coroutine[Any, Any, pb.CreateDraftResponse]]
Update = Callable[..., Coroutine[Any, Any, pb.UpdateDraftResponse]]
Approve = Callable[..., Coroutine[Any, Any, pb.ApproveDraftResponse]]
CreateBatch = Callable[..., Coroutine[Any, Any, pb.BatchCreateDraftsResponse]]
ApproveBatch = Callable[..., Coroutine[Any, Any, pb.BatchApproveDraftsResponse]]
Reflect = Callable[..., Awaitable[None]]
Keep = Callable[..., Awaitable[None]]


@pytest.fixture
def ledger(database: Database) -> RequestLedger:
    return RequestLedger(database, DatabaseClock())


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(Uuid7Source(), lambda rows: None)


@pytest.fixture
def announced(database: Database) -> Callable[[], Awaitable[list[DraftSaved]]]:
    """Reads all announcements so far, oldest first."""

    async def read() -> list[DraftSaved]:
        async with database.read() as connection:
            rows = await connection.execute(text("select payload from outbox order by position"))
        return [
            DraftSaved.FromString(event.payload) for (payload,) in rows for event in Envelope.FromString(payload).events
        ]

    return read


class FakeDirectory:
    """Publisher's accounts; unreachable unless a test sets `accounts`."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] | None = None
        self.asked: list[str] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None

    async def account(self, organization_id: str, account_id: str) -> Account | None:
        self.asked.append(account_id)
        if self.before_answer:
            await self.before_answer()
        if self.accounts is None:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "unreachable")
        return self.accounts.get(account_id)


@pytest.fixture
def directory() -> FakeDirectory:
    return FakeDirectory()


@pytest.fixture
def obstacles(database: Database, directory: FakeDirectory) -> AccountObstacles:
    return AccountObstacles(database=database, directory=directory)


class FakeRules:
    """Rules of Publisher's channels; unreachable unless a test sets `taken`."""

    def __init__(self) -> None:
        self.taken: Rules | None = None
        self.asked = 0

    async def rules(self) -> Rules:
        self.asked += 1
        if self.taken is None:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "unreachable")
        return self.taken


@pytest.fixture
def channel_rules() -> FakeRules:
    return FakeRules()


class FakeMedia:
    """Findings of Publisher at addresses; unreachable unless a test sets `found`."""

    def __init__(self) -> None:
        self.found: Inspected | None = None
        self.asked: list[list[str]] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None

    async def inspect(self, organization_id: str, urls: Sequence[str]) -> Inspected:
        self.asked.append(list(urls))
        if self.before_answer:
            await self.before_answer()
        return {url: self.found[url] for url in urls if url in self.found} if self.found else {}


@pytest.fixture
def media() -> FakeMedia:
    return FakeMedia()


@pytest.fixture
def check(channel_rules: FakeRules, obstacles: AccountObstacles, media: FakeMedia) -> ContentCheck:
    return ContentCheck(obstacles=obstacles, rules=KnownRules(channel_rules, FrozenClock()), media=media)


@dataclass
class FakePublisher:
    """Withdraws at once unless a test changes that; records what was committed when it was asked."""

    database: Database
    asked: list[tuple[str, int]] = field(default_factory=list)
    seen: list[tuple[str, bool, int | None]] = field(default_factory=list)  # text, approved, pending
    in_flight: tuple[str, ...] = ()
    published: tuple[PostJob, ...] = ()
    unreachable_for: set[str] = field(default_factory=set)
    uninformed: int = 0  # number of calls before the last revision is announced to it
    hold: asyncio.Event | None = None  # the next call waits for it
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        self.asked.append((draft_id, below))
        self.seen.append(await self._committed(draft_id))
        answer = WithdrawalAnswer(below=below, in_flight=self.in_flight, published=self.published)
        if self.hold:
            hold, self.hold = self.hold, None
            self.held.set()
            await hold.wait()
        if draft_id in self.unreachable_for:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "unreachable", retry_after=timedelta(seconds=2))
        if self.uninformed:
            self.uninformed -= 1
            return None
        return answer

    async def _committed(self, draft_id: str) -> tuple[str, bool, int | None]:
        query = text("select content, approved_digest, withdraw_below from draft where id = :id")
        async with self.database.statement() as connection:
            row = (await connection.execute(query, {"id": draft_id})).one()
        return DraftContent.FromString(row.content).text, row.approved_digest is not None, row.withdraw_below


@pytest.fixture
def publisher(database: Database) -> FakePublisher:
    return FakePublisher(database)


@pytest.fixture
def creation(outbox: Outbox) -> DraftCreation:
    return DraftCreation(ids=Uuid7Source(), outbox=outbox)


@pytest.fixture
def create_draft(creation: DraftCreation, ledger: RequestLedger, check: ContentCheck) -> Create:
    """`await create_draft(draft_id=..., content=..., targets=...)`; like all mutations here it takes a `request_id`."""
    create = CreateDraft(creation=creation, ledger=ledger, check=check)

    def given(
        *, draft_id: str, content: Content, targets: tuple[Target, ...], placement: Placement = NO_PLACEMENT
    ) -> GivenDraft:
        return GivenDraft(id=draft_id, content=content, targets=targets, placement=placement)

    return _as_called(create, pb.CreateDraftRequest, pb.CreateDraftResponse, drafts.create_draft_response, given)


@pytest.fixture
def create_drafts(creation: DraftCreation, ledger: RequestLedger, check: ContentCheck) -> CreateBatch:
    """`await create_drafts(given=[GivenDraft(...), ...])`"""
    return _as_called(
        BatchCreateDrafts(creation=creation, ledger=ledger, check=check),
        pb.BatchCreateDraftsRequest,
        pb.BatchCreateDraftsResponse,
        drafts.batch_create_drafts_response,
    )


@pytest.fixture
def approve_draft(ledger: RequestLedger, outbox: Outbox, check: ContentCheck) -> Approve:
    """`await approve_draft()` approves the draft `draft`, without preconditions."""
    approve = _as_called(
        ApproveDraft(approval=DraftApproval(outbox), ledger=ledger, check=check),
        pb.ApproveDraftRequest,
        pb.ApproveDraftResponse,
        drafts.approve_draft_response,
        GivenApproval,
    )
    return partial(approve, draft_id="draft", content_digest="", etag="", approver="ann")


@pytest.fixture
def approve_drafts(ledger: RequestLedger, outbox: Outbox, check: ContentCheck) -> ApproveBatch:
    """`await approve_drafts(given=[GivenApproval(...), ...])`"""
    return _as_called(
        BatchApproveDrafts(approval=DraftApproval(outbox), ledger=ledger, check=check),
        pb.BatchApproveDraftsRequest,
        pb.BatchApproveDraftsResponse,
        drafts.batch_approve_drafts_response,
    )


@pytest.fixture
def update_draft(
    database: Database,
    ledger: RequestLedger,
    outbox: Outbox,
    publisher: FakePublisher,
    obstacles: AccountObstacles,
    check: ContentCheck,
) -> Update:
    """`await update_draft(change=...)` changes the draft `draft`, without a precondition."""
    update = UpdateDraft(
        database=database,
        clock=DatabaseClock(),
        ledger=ledger,
        outbox=outbox,
        publisher=publisher,
        obstacles=obstacles,
        check=check,
    )
    called = _as_called(update, pb.UpdateDraftRequest, pb.UpdateDraftResponse, drafts.update_draft_response)
    return partial(called, draft_id="draft", etag="")


def _as_called(
    use_case: Callable[..., Awaitable[Any]],
    request: Callable[..., Any],
    response: type[Any],
    answer: Callable[[Any], Any],
    given: Callable[..., Any] | None = None,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Returns the use case as a caller sees it; two requests are equal if their `digest` is.

    `given` makes the value that the use case gets of the arguments.
    """

    async def called(
        *, request_id: str = "", organization_id: str = "org", digest: bytes = b"", **arguments: object
    ) -> Any:
        call = mutation(request(organization_id=organization_id, request_id=request_id), response, answer)
        arguments = {"given": given(**arguments)} if given else arguments
        return await use_case(replace(call, request_digest=digest), **arguments)

    return called


@pytest.fixture
def get_draft(database: Database, obstacles: AccountObstacles) -> Get:
    """`await get_draft("draft", organization_id="org")` reads the draft as a caller sees it."""
    get = GetDraft(database=database, obstacles=obstacles)

    async def read(draft_id: str = "draft", *, organization_id: str = "org") -> Draft:
        return drafts.draft_message(await get(organization_id=organization_id, draft_id=draft_id))

    return read


@pytest.fixture
def a_draft(create_draft: Create, approve_draft: Approve) -> ADraft:
    """`await a_draft("draft", text="text", accounts=("a",), approved=False)`: one Facebook target per account."""

    async def make(
        id: str = "draft",  # noqa: A002 - as the field is called
        *,
        text: str = "text",
        accounts: tuple[str, ...] = ("a",),
        approved: bool = False,
        organization_id: str = "org",
    ) -> Draft:
        targets = tuple(Target(social_account_id=account, channel="facebook") for account in accounts)
        created = await create_draft(
            draft_id=id, content=Content(text=text), targets=targets, organization_id=organization_id
        )
        if not approved:
            return created.draft
        return (await approve_draft(draft_id=id, organization_id=organization_id)).draft

    return make


@pytest.fixture
def reflect(database: Database) -> Reflect:
    """`await reflect(job, job, ...)` applies one batch of events."""

    async def apply(*events: PostJobEvent) -> None:
        async def work(tx: Transaction) -> None:
            await ReflectPostJobs()(tx, events, await DatabaseClock().now(tx.connection))

        await database.run(work)

    return apply


@pytest.fixture
def a_job() -> Callable[..., PostJobEvent]:
    """`a_job(JobState.READY, version=1, draft_id="draft", account="a")`; its id is `draft-a`."""

    def make(
        state: JobState,
        *,
        version: int = 1,
        draft_id: str = "draft",
        account: str = "a",
        organization_id: str = "org",
        schedule_time: datetime | None = None,
        publish_time: datetime | None = None,
        external_url: str = "",
        error_message: str = "",
        state_reason: str = "",
        part: int = 0,
    ) -> PostJobEvent:
        return PostJobEvent(
            organization_id=organization_id,
            id=f"{draft_id}-{account}-{part}" if part else f"{draft_id}-{account}",
            draft_id=draft_id,
            part=part,
            version=version,
            target=Target(social_account_id=account, channel="facebook"),
            state=state,
            schedule_time=schedule_time,
            publish_time=publish_time,
            external_url=external_url,
            error_message=error_message,
            state_reason=state_reason,
            kind="TEST",
            payload=b"payload",
            occur_time=datetime(2026, 3, 2, tzinfo=UTC),
        )

    return make


@pytest.fixture
def keep(database: Database) -> Keep:
    """`await keep(account, ...)` applies one batch of events."""

    async def apply(*accounts: Account) -> None:
        async def work(tx: Transaction) -> None:
            await KeepAccounts()(tx, accounts, await DatabaseClock().now(tx.connection))

        await database.run(work)

    return apply
