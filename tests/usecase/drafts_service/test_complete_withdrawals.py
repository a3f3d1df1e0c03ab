"""The loop that completes withdrawals whose caller is gone."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.domain.draft import PATIENCE, Change
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Outbox
from testkit.database_clocks import ShiftedDatabaseClock
from tests.usecase.drafts_service.withdrawals import ADraft, Announced, Approve, Get, Update, out, pending


@pytest.fixture
def complete_withdrawals(database: Database, publisher: Any, outbox: Outbox) -> CompleteWithdrawals:
    """Runs as if the callers' time were over."""
    clock = ShiftedDatabaseClock(PATIENCE)
    return CompleteWithdrawals(database=database, clock=clock, publisher=publisher, outbox=outbox)


async def test_the_loop_takes_a_withdrawal_over_after_the_callers_time(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    database: Database,
    outbox: Outbox,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(approved=True)
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(change=Change(text="new"))
    publisher.unreachable_for = set()
    at_once = CompleteWithdrawals(database=database, clock=DatabaseClock(), publisher=publisher, outbox=outbox)
    assert await at_once() is False
    assert len(publisher.asked) == 1
    assert await complete_withdrawals() is False
    assert publisher.asked == [("draft", 2), ("draft", 2)]
    assert await pending(database) is None
    await complete_withdrawals()
    assert len(publisher.asked) == 2


async def test_a_caller_that_hangs_up_leaves_the_draft_unchanged_and_free(
    a_draft: ADraft,
    update_draft: Update,
    get_draft: Get,
    publisher: Any,
    database: Database,
    announced: Announced,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    before = await a_draft(text="old", approved=True)
    publisher.hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(update_draft(etag=before.etag, change=Change(text="new"), request_id="request"))
        await publisher.held.wait()
        call.cancel()
    assert await pending(database) == 2
    await complete_withdrawals()
    assert await pending(database) is None
    saved = (await announced())[-1]
    assert (saved.revision, saved.approved, saved.content_digest) == (2, True, before.content_digest)
    after = await get_draft()
    assert (after.content.text, after.approved, after.etag) == ("old", True, before.etag)
    # The repeat, with the precondition of the first call, makes the change.
    answer = await update_draft(etag=before.etag, change=Change(text="new"), request_id="request")
    assert (answer.draft.content.text, answer.draft.approved, answer.draft.revision) == ("new", False, 3)
    assert publisher.asked == [("draft", 2), ("draft", 2), ("draft", 3)]


async def test_a_caller_slower_than_the_loop_asks_again(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(text="old", approved=True)
    publisher.hold = hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(update_draft(change=Change(text="new")))
        await publisher.held.wait()
        await complete_withdrawals()
        hold.set()
    assert publisher.asked == [("draft", 2), ("draft", 2), ("draft", 3)]
    assert (slow.result().draft.content.text, slow.result().draft.revision) == ("new", 3)


async def test_an_edit_after_one_given_up_names_the_jobs_in_flight(
    a_draft: ADraft, update_draft: Update, publisher: Any, complete_withdrawals: CompleteWithdrawals
) -> None:
    """The draft is no longer approved: only `exposed`, from earlier answers, makes UpdateDraft ask Publisher."""
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("draft-a",)
    await update_draft(change=Change(text="new"))
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(change=Change(text="newer"))
    publisher.unreachable_for = set()
    await complete_withdrawals()
    answer = await update_draft(change=Change(text="newest"))
    assert list(answer.in_flight_post_job_ids) == ["draft-a"]
    assert publisher.asked[-1] == ("draft", 4)


async def test_the_loop_learns_which_posts_went_out_meanwhile(
    a_draft: ADraft,
    update_draft: Update,
    get_draft: Get,
    publisher: Any,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(text="old", approved=True)
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(change=Change(text="new"))
    publisher.unreachable_for, publisher.published = set(), (out(),)
    await complete_withdrawals()
    after = await get_draft()
    assert (after.state, after.content.text) == (DRAFT_STATE_PUBLISHED, "old")
    assert await pending(database) is None


async def test_the_loop_repeats_a_lost_announcement(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    database: Database,
    announced: Announced,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(approved=True)
    publisher.uninformed = 100
    with pytest.raises(Unavailable) as refusal:
        await update_draft(change=Change(text="new"))
    assert refusal.value.reason == "WITHDRAW_PENDING"
    assert refusal.value.retry_after
    before = await announced()
    await complete_withdrawals()
    assert await announced() == [*before, before[-1]]
    assert await pending(database) == 2
    await complete_withdrawals()  # not due again so soon: while NATS is down, announcements pile up
    assert await announced() == [*before, before[-1]]
    publisher.uninformed = 0
    answer = await update_draft(change=Change(text="new"))
    assert answer.draft.content.text == "new"


async def test_one_withdrawal_that_fails_does_not_hold_up_the_others(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    database: Database,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    publisher.unreachable_for = {"one", "two", "three"}
    for name in sorted(publisher.unreachable_for):
        await a_draft(name, approved=True)
        with pytest.raises(Unavailable):
            await update_draft(draft_id=name, change=Change(text="new"))
    with pytest.raises(Unavailable):
        await complete_withdrawals()
    async with database.statement() as connection:
        await connection.execute(text("update draft set withdraw_due_time = create_time"))
    publisher.unreachable_for = {"one"}
    assert await complete_withdrawals() is False
    assert [await pending(database, name) for name in ("one", "two", "three")] == [2, None, None]


async def test_an_approval_during_a_pending_edit_stays(
    a_draft: ADraft,
    update_draft: Update,
    approve_draft: Approve,
    get_draft: Get,
    publisher: Any,
    announced: Announced,
    complete_withdrawals: CompleteWithdrawals,
) -> None:
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("job",)
    await update_draft(change=Change(text="new"))
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(change=Change(text="newer"))
    approved = (await approve_draft(approver="bob")).draft
    assert (approved.content.text, approved.approved) == ("new", True)
    publisher.unreachable_for = set()
    await complete_withdrawals()
    after = await get_draft()
    assert (after.content.text, after.approved, after.etag) == ("new", True, approved.etag)
    saved = (await announced())[-1]
    assert (saved.revision, saved.approved) == (3, True)
