import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.account import Account
from drafts_service.domain.content import Content
from drafts_service.domain.post_job import JobState, PostJob, PostJobEvent
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.faults import Unavailable
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

Create = Callable[..., Awaitable[Draft]]
Reflect = Callable[..., Awaitable[None]]


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(Uuid7Source(), lambda rows: None)


@pytest.fixture
def announced(database: Database) -> Callable[[], Awaitable[list[DraftSaved]]]:
    """What has been announced so far, oldest first."""

    async def read() -> list[DraftSaved]:
        async with database.read() as connection:
            rows = await connection.execute(text("select payload from outbox order by position"))
        return [
            DraftSaved.FromString(event.payload) for (payload,) in rows for event in Envelope.FromString(payload).events
        ]

    return read


class FakeDirectory:
    """Publisher's accounts. Away, as far as most tests go: then nothing is said about accounts."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] | None = None
        self.asked: list[str] = []
        self.before_answer: Callable[[], Awaitable[None]] | None = None

    async def account(self, organization_id: str, account_id: str) -> Account | None:
        self.asked.append(account_id)
        if self.before_answer:
            await self.before_answer()
        if self.accounts is None:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
        return self.accounts.get(account_id)


@pytest.fixture
def directory() -> FakeDirectory:
    return FakeDirectory()


@pytest.fixture
def obstacles(database: Database, directory: FakeDirectory) -> AccountObstacles:
    return AccountObstacles(database=database, directory=directory)


@pytest.fixture
def create_draft(database: Database, outbox: Outbox, obstacles: AccountObstacles) -> CreateDraft:
    return CreateDraft(
        database=database,
        clock=DatabaseClock(),
        ids=Uuid7Source(),
        ledger=RequestLedger(),
        outbox=outbox,
        obstacles=obstacles,
    )


@pytest.fixture
def approve_draft(database: Database, outbox: Outbox) -> ApproveDraft:
    return ApproveDraft(database=database, clock=DatabaseClock(), ledger=RequestLedger(), outbox=outbox)


@pytest.fixture
def get_draft(database: Database, obstacles: AccountObstacles) -> GetDraft:
    return GetDraft(database=database, obstacles=obstacles)


@pytest.fixture
def a_draft(create_draft: CreateDraft, approve_draft: ApproveDraft) -> Create:
    """`await a_draft("draft", text="text", accounts=("a",), approved=False)`: one Facebook target per account."""

    async def make(
        id: str = "draft",  # noqa: A002 - as the field is called
        *,
        text: str = "text",
        accounts: tuple[str, ...] = ("a",),
        approved: bool = False,
        organization_id: str = "org",
    ) -> Draft:
        key = RequestKey(organization_id=organization_id, method="", request_id="", request_digest=b"")
        targets = tuple(Target(social_account_id=account, channel="facebook") for account in accounts)
        created = (await create_draft(key, draft_id=id, content=Content(text=text), targets=targets)).draft
        if not approved:
            return created
        return (await approve_draft(key, draft_id=id, content_digest="", etag="", approver="ann")).draft

    return make


@dataclass
class FakePublisher:
    """Withdraws at once unless a test says otherwise, and looks at what was committed before it was asked."""

    database: Database
    asked: list[tuple[str, int]] = field(default_factory=list)
    seen: list[tuple[str, bool, int | None]] = field(default_factory=list)  # text, approved, pending
    in_flight: tuple[str, ...] = ()
    published: tuple[PostJob, ...] = ()
    unreachable_for: set[str] = field(default_factory=set)
    deaf: int = 0  # so many questions come before the announcement of the last revision
    hold: asyncio.Event | None = None  # the next call answers when this is set
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
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "away", retry_after=timedelta(seconds=2))
        if self.deaf:
            self.deaf -= 1
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
def update_draft(
    database: Database, outbox: Outbox, publisher: FakePublisher, obstacles: AccountObstacles
) -> UpdateDraft:
    return UpdateDraft(
        database=database,
        clock=DatabaseClock(),
        ledger=RequestLedger(),
        outbox=outbox,
        publisher=publisher,
        obstacles=obstacles,
    )


@pytest.fixture
def reflect(database: Database) -> Reflect:
    """`await reflect(job, job, ...)`: one batch of events."""

    async def apply(*events: PostJobEvent) -> None:
        async def work(tx: Transaction) -> None:
            await ReflectPostJobs()(tx, events, await DatabaseClock().now(tx.connection))

        await database.run(work)

    return apply


@pytest.fixture
def a_job() -> Callable[..., PostJobEvent]:
    """`a_job(JobState.READY, version=1, draft_id="draft", account="a")`; its id is made of draft and account."""

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
    ) -> PostJobEvent:
        return PostJobEvent(
            organization_id=organization_id,
            id=f"{draft_id}-{account}",
            draft_id=draft_id,
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
