"""The queue of an account, as callers see it."""

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.application.account_check import AccountCheck
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.get_queue import GetQueue
from queue_service.application.next_free_time import NextFreeTime
from queue_service.domain.account import Connection
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.queue_view import LiveSlots, QueueView
from servicekit.faults import NotFound, Unavailable
from servicekit.pg.session import Statement
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)


def next_free_time(queue: "Queue") -> NextFreeTime:
    return NextFreeTime(database=queue.database, clock=queue.clock, read_times=queue.read_times, policy=queue.policy)


async def view(queue: "Queue", account: str = "page", organization_id: str = "acme") -> QueueView:
    get_queue = GetQueue(
        database=queue.database,
        clock=queue.clock,
        check_accounts=AccountCheck(queue.accounts),
        next_free_time=next_free_time(queue),
    )
    return await get_queue((organization_id, account))


async def test_an_account_without_slots_and_schedule_has_an_empty_queue(queue: "Queue") -> None:
    assert await view(queue) == QueueView(social_account_id="page", is_connected=True)


async def test_an_account_that_publisher_does_not_know_is_refused(queue: "Queue") -> None:
    queue.accounts.missing = {"page"}
    with pytest.raises(NotFound) as refused:
        await view(queue)
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_an_account_that_was_announced_is_not_asked_about(queue: "Queue") -> None:
    queue.accounts.missing = {"page"}
    gone = Connection(organization_id="acme", social_account_id="page", version=1, is_connected=False)
    await queue.apply(follow_accounts, gone)
    assert (await view(queue)).is_connected is False
    assert queue.accounts.asked == []


async def test_an_account_that_is_not_connected_is_shown_as_such(queue: "Queue") -> None:
    queue.accounts.disconnected = {"page"}
    assert (await view(queue)).is_connected is False


async def test_the_queue_is_shown_while_publisher_is_down(queue: "Queue") -> None:
    queue.accounts.fault = Unavailable("DOWN", "no")
    assert (await view(queue)).is_connected is True


async def test_live_slots_are_counted_by_state(queue: "Queue") -> None:
    await queue.fill("page", START, HOUR, 50)
    await queue.fill("other", START, HOUR, 3)
    queue.now = START
    await queue.hand_over.dispatch()
    queue.now = START + 2 * HOUR
    assert (await view(queue)).slots == LiveSlots(
        scheduled=49, dispatched=1, overdue=2, next_time=START, last_time=START + 49 * HOUR
    )
    assert (await view(queue)).empty_on == (START + 49 * HOUR).date()


async def test_a_queue_of_another_organization_is_not_shown(queue: "Queue") -> None:
    await queue.fill("page", START, HOUR, 2)
    assert (await view(queue, organization_id="umbrella")).slots == LiveSlots()


async def test_settings_pause_and_skips_are_shown(queue: "Queue") -> None:
    await queue.put_schedule("page", MONDAY_NINE)
    async with queue.database.transaction() as tx:
        await tx.execute(
            Statement("""
                update account_queue set arrangement = 7, pause_time = :now, pauser = 'Ann', pause_reason = 'a fire',
                    hold_revision = 3, hold_stored_revision = 2, skip_next = true,
                    skipped_times = array[cast(:past as timestamptz), :next], late_action = 'MISS',
                    late_grace = :grace, pace = :pace
            """),
            {
                "now": START,
                "past": START - HOUR,
                "next": START + HOUR,
                "grace": HOUR,
                "pace": timedelta(seconds=90),
            },
        )
    assert await view(queue) == QueueView(
        social_account_id="page",
        etag="7",
        pause_time=START,
        pauser="Ann",
        pause_reason="a fire",
        is_hold_pending=True,
        schedule_enabled=True,
        is_connected=True,
        time_zone="UTC",
        skip_next=True,
        skipped_times=(START + HOUR,),
        late_policy=LatePolicy(grace=HOUR, action=LateAction.MISS),
        pace=timedelta(seconds=90),
        # The one after the next one.
        next_free_time=START + timedelta(weeks=2),
    )


async def test_a_deleted_or_disabled_schedule_is_not_enabled(queue: "Queue") -> None:
    await queue.put_schedule("page", MONDAY_NINE, enabled=False)
    assert (await view(queue)).schedule_enabled is False
    await queue.put_schedule("page", MONDAY_NINE, version=2)
    assert (await view(queue)).schedule_enabled is True
    await queue.delete_schedule("page", version=3)
    assert (await view(queue)).schedule_enabled is False


async def test_the_day_on_which_a_queue_runs_empty_is_a_local_one(queue: "Queue") -> None:
    queue.schedule.zone = "Pacific/Auckland"
    await queue.put_schedule("page", MONDAY_NINE)
    last = START.replace(hour=20)
    await queue.fill("page", last, HOUR, 1)
    assert (await view(queue)).empty_on == date(last.year, last.month, last.day) + timedelta(days=1)
