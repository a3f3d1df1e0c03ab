import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.draft import PATIENCE, Change
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import UpdateDraftResponse
from servicekit.faults import Fault, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

Announced = Callable[[], Awaitable[list[DraftSaved]]]
Create = Callable[..., Awaitable[Draft]]


@dataclass
class FakePublisher:
    """Confirms at once unless it is told otherwise, and looks at what was committed before it was asked."""

    database: Database
    asked: list[tuple[str, int]] = field(default_factory=list)
    pending_when_asked: list[int | None] = field(default_factory=list)
    in_flight: list[str] = field(default_factory=list)
    in_flight_at_first: list[str] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    hold: asyncio.Event | None = None  # the next call answers when this is set
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> list[str]:
        is_first = not self.asked
        self.asked.append((draft_id, below))
        self.pending_when_asked.append(await pending(self.database, draft_id))
        if self.hold:
            hold, self.hold = self.hold, None
            self.held.set()
            await hold.wait()
        if draft_id in self.away:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "away", retry_after=timedelta(seconds=2))
        return self.in_flight + (self.in_flight_at_first if is_first else [])


class ClockAhead(DatabaseClock):
    async def now(self, connection: AsyncConnection) -> datetime:
        return await super().now(connection) + PATIENCE


async def pending(database: Database, draft_id: str = "draft") -> int | None:
    async with database.read() as connection:
        found = await connection.execute(text("select withdraw_below from draft where id = :id"), {"id": draft_id})
        below: int | None = found.scalar_one()
        return below


@pytest.fixture
def publisher(database: Database) -> FakePublisher:
    return FakePublisher(database)


@pytest.fixture
def update_draft(database: Database, outbox: Outbox, publisher: FakePublisher) -> UpdateDraft:
    return UpdateDraft(
        database=database, clock=DatabaseClock(), ledger=RequestLedger(), outbox=outbox, publisher=publisher
    )


@pytest.fixture
def complete_withdrawals(database: Database, publisher: FakePublisher) -> CompleteWithdrawals:
    """As it works when those who asked first have had their time."""
    return CompleteWithdrawals(database=database, clock=ClockAhead(), publisher=publisher)


def key(request_id: str = "") -> RequestKey:
    return RequestKey(organization_id="org", method="UpdateDraft", request_id=request_id, request_digest=b"")


def only_b() -> Change:
    return Change(targets=(Target(social_account_id="b", channel="facebook"),))


@pytest.mark.parametrize("change", [Change(text="new"), only_b()], ids=["content", "targets"])
async def test_a_change_of_an_approved_draft_is_committed_then_withdraws_what_is_older_then_answers(
    a_draft: Create,
    update_draft: UpdateDraft,
    publisher: FakePublisher,
    database: Database,
    announced: Announced,
    change: Change,
) -> None:
    await a_draft(approved=True)
    publisher.in_flight = ["job-1", "job-2"]
    answer = await update_draft(key(), draft_id="draft", etag="", change=change)
    assert publisher.asked == [("draft", 2)]
    assert publisher.pending_when_asked == [2]
    assert list(answer.in_flight_post_job_ids) == ["job-1", "job-2"]
    assert await pending(database) is None
    saved = (await announced())[-1]
    assert (saved.revision, saved.approved) == (2, change.text is None)


async def test_while_publisher_is_away_the_change_is_kept_and_the_withdrawal_pending(
    a_draft: Create,
    update_draft: UpdateDraft,
    get_draft: GetDraft,
    publisher: FakePublisher,
    database: Database,
    announced: Announced,
) -> None:
    await a_draft(approved=True)
    publisher.away = {"draft"}
    with pytest.raises(Unavailable) as refusal:
        await update_draft(key("request"), draft_id="draft", etag="", change=Change(text="new"))
    assert (refusal.value.reason, refusal.value.retry_after) == ("WITHDRAW_PENDING", timedelta(seconds=2))
    assert refusal.value.metadata == {"draft_id": "draft", "revision": "2"}
    assert await pending(database) == 2
    kept = (await get_draft(organization_id="org", draft_id="draft")).draft
    assert (kept.content.text, kept.approved) == ("new", False)
    assert not (await announced())[-1].approved


async def test_repeating_the_request_completes_it_and_then_only_tells_the_answer(
    a_draft: Create, update_draft: UpdateDraft, publisher: FakePublisher, database: Database, announced: Announced
) -> None:
    etag = (await a_draft(approved=True)).etag
    publisher.away = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(key("request"), draft_id="draft", etag=etag, change=Change(text="new"))
    publisher.away = set()
    publisher.in_flight = ["job"]
    answer = await update_draft(key("request"), draft_id="draft", etag=etag, change=Change(text="new"))
    assert (answer.draft.content.text, answer.draft.revision, list(answer.in_flight_post_job_ids)) == (
        "new",
        2,
        ["job"],
    )
    assert await pending(database) is None
    publisher.in_flight = []
    assert await update_draft(key("request"), draft_id="draft", etag=etag, change=Change(text="new")) == answer
    assert publisher.asked == [("draft", 2), ("draft", 2)]
    assert len(await announced()) == 3


async def test_without_a_request_id_the_same_change_again_completes_the_withdrawal(
    a_draft: Create, update_draft: UpdateDraft, publisher: FakePublisher, database: Database
) -> None:
    await a_draft(approved=True)
    publisher.away = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))
    with pytest.raises(Unavailable):
        await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))
    publisher.away = set()
    assert (await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))).draft.revision == 2
    assert await pending(database) is None


async def test_one_request_made_twice_at_a_time_has_one_answer(
    a_draft: Create, update_draft: UpdateDraft, publisher: FakePublisher, announced: Announced
) -> None:
    await a_draft(approved=True)
    publisher.hold = hold = asyncio.Event()
    publisher.in_flight_at_first = ["was still on its way"]

    async def call() -> UpdateDraftResponse:
        return await update_draft(key("request"), draft_id="draft", etag="", change=Change(text="new"))

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(call())]
        await publisher.held.wait()
        calls += [group.create_task(call()) for _ in range(4)]
        await asyncio.wait(calls[1:])
        hold.set()
    assert len({call.result().SerializeToString(deterministic=True) for call in calls}) == 1
    assert len(await announced()) == 3


async def test_a_confirmation_does_not_cover_a_later_change(
    a_draft: Create, update_draft: UpdateDraft, publisher: FakePublisher, database: Database
) -> None:
    await a_draft(approved=True)
    publisher.hold = hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(update_draft(key(), draft_id="draft", etag="", change=Change(text="new")))
        await publisher.held.wait()
        publisher.away = {"draft"}
        with pytest.raises(Unavailable):
            await update_draft(key(), draft_id="draft", etag="", change=Change(text="newer"))
        publisher.away = set()
        hold.set()
    assert first.result().draft.revision == 2
    assert await pending(database) == 3


async def test_a_withdrawal_is_left_to_its_caller_first_and_completed_by_the_loop_later(
    a_draft: Create,
    update_draft: UpdateDraft,
    publisher: FakePublisher,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(approved=True)
    publisher.away = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))
    publisher.away = set()
    at_once = CompleteWithdrawals(database=database, clock=DatabaseClock(), publisher=publisher)
    assert await at_once() is False
    assert len(publisher.asked) == 1
    assert await complete_withdrawals() is False
    assert publisher.asked == [("draft", 2), ("draft", 2)]
    assert await pending(database) is None
    await complete_withdrawals()
    assert len(publisher.asked) == 2


async def test_a_caller_that_hangs_up_leaves_the_withdrawal_to_the_loop(
    a_draft: Create,
    update_draft: UpdateDraft,
    publisher: FakePublisher,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(approved=True)
    publisher.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(update_draft(key(), draft_id="draft", etag="", change=Change(text="new")))
        await publisher.held.wait()
        call.cancel()
    assert await pending(database) == 2
    await complete_withdrawals()
    assert await pending(database) is None


async def test_one_withdrawal_that_fails_does_not_hold_up_the_others(
    a_draft: Create,
    update_draft: UpdateDraft,
    publisher: FakePublisher,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    publisher.away = {"one", "two", "three"}
    for name in sorted(publisher.away):
        await a_draft(name, approved=True)
        with pytest.raises(Unavailable):
            await update_draft(key(), draft_id=name, etag="", change=Change(text="new"))
    with pytest.raises(Unavailable):
        await complete_withdrawals()
    async with database.read() as connection:
        await connection.execute(text("update draft set withdraw_due_time = create_time"))
    publisher.away = {"one"}
    assert await complete_withdrawals() is False
    assert [await pending(database, name) for name in ("one", "two", "three")] == [2, None, None]


async def test_a_draft_may_be_approved_while_its_withdrawal_is_pending_and_stays_so(
    a_draft: Create,
    update_draft: UpdateDraft,
    approve_draft: ApproveDraft,
    get_draft: GetDraft,
    publisher: FakePublisher,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(approved=True)
    publisher.away = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))
    approved = (await approve_draft(key(), draft_id="draft", content_digest="", etag="", approver="bob")).draft
    assert await pending(database) == 2
    publisher.away = set()
    await complete_withdrawals()
    assert await pending(database) is None
    assert (await get_draft(organization_id="org", draft_id="draft")).draft == approved


async def test_a_change_racing_an_approval_never_leaves_unread_content_approved_or_older_text_free(
    a_draft: Create,
    update_draft: UpdateDraft,
    approve_draft: ApproveDraft,
    get_draft: GetDraft,
    publisher: FakePublisher,
) -> None:
    won = {"approval first": 0, "change first": 0}
    for number in range(20):
        name = f"draft-{number}"
        before = await a_draft(name)
        approval = approve_draft(key(), draft_id=name, content_digest=before.content_digest, etag="", approver="ann")
        change = update_draft(key(), draft_id=name, etag="", change=Change(text="new"))
        async with asyncio.TaskGroup() as group:
            tasks = [outcome(approval), outcome(change)]
            first, second = (group.create_task(each) for each in (tasks if number % 2 else tasks[::-1]))
        approved = "APPROVED" in {first.result(), second.result()}
        won["approval first" if approved else "change first"] += 1
        after = (await get_draft(organization_id="org", draft_id=name)).draft
        assert (after.content.text, after.approved) == ("new", False)
        assert ((name, 2) in publisher.asked) is approved
    assert all(won.values()), won


async def outcome(call: Awaitable[object]) -> str:
    try:
        return type(await call).__name__.removesuffix("DraftResponse").upper() + "D"
    except Fault as fault:
        return fault.reason
