"""Explaining slots: what has happened to them, or what keeps them from going out, and why."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_service_pb2 import QUEUE_PLACE_FRONT
from queue_service.application.follow_accounts import follow_accounts
from queue_service.domain.account import Connection
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.policy import Policy
from queue_service.domain.resuming import OverduePolicy
from servicekit.faults import NotFound, Unavailable
from servicekit.timestamps import timestamp
from testkit.clocks import START
from tests.usecase.queue_service.explaining import explained, reasons
from tests.usecase.queue_service.pausing import Pausing, dispatched
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


async def booked(queue: "Queue", draft_id: str = "d1", ahead: timedelta = HOUR) -> str:
    """Gives the draft a slot; returns its id."""
    await queue.save_draft(draft_id, "page")
    [slot] = await queue.at(draft_id, queue.now + ahead)
    return slot.id


async def test_an_unknown_slot_and_that_of_another_organization_are_not_found(queue: "Queue") -> None:
    slot_id = await booked(queue)
    for organization_id, name in [("acme", "none"), ("umbrella", slot_id)]:
        with pytest.raises(NotFound) as refused:
            await explained(queue, name, organization_id)
        assert refused.value.reason == "SLOT_NOT_FOUND"


async def test_a_slot_without_obstacles_is_only_not_due(queue: "Queue") -> None:
    found = await explained(queue, await booked(queue))
    assert (found.time_reason, found.passed_times) == ("CHOSEN", ())
    [obstacle] = found.obstacles
    assert (obstacle.reason, obstacle.clear_time) == ("NOT_DUE", START + HOUR)
    assert found.summary == (
        "Draft d1 is to go out on account page at 2026-03-02 10:00:00 UTC. The caller chose this time. There is no "
        "earlier slot time from now on. It is handed to Publisher shortly before its time, and nothing is known to "
        "prevent that. If it has not gone out by 2026-03-03 10:00:00 UTC, it is missed."
    )


async def test_a_paused_queue_is_an_obstacle_until_it_is_resumed(queue: "Queue") -> None:
    slot_id = await booked(queue)
    await Pausing(queue).pause(reason="an incident")
    queue.now += 2 * HOUR
    found = await explained(queue, slot_id)
    assert reasons(found) == ["QUEUE_PAUSED"]
    assert found.obstacles[0].message == ("the queue has been paused by ann since 2026-03-02 09:00:00 UTC: an incident")
    assert "is overdue by 1 hour" in found.summary
    assert "is missed" not in found.summary
    await Pausing(queue).resume(overdue=OverduePolicy.PUBLISH_PACED)
    after = await explained(queue, slot_id)
    assert (after.time_reason, after.obstacles) == ("RESUMED", ())


async def test_a_disabled_schedule_is_an_obstacle(queue: "Queue") -> None:
    slot_id = await booked(queue)
    await queue.put_schedule("page", enabled=False)
    assert reasons(await explained(queue, slot_id)) == ["SCHEDULE_DISABLED", "NOT_DUE"]


async def test_a_disconnected_account_is_an_obstacle(queue: "Queue") -> None:
    slot_id = await booked(queue)
    queue.accounts.disconnected = {"page"}
    assert reasons(await explained(queue, slot_id)) == ["ACCOUNT_NOT_CONNECTED", "NOT_DUE"]
    queue.accounts.disconnected = set()
    gone = Connection(organization_id="acme", social_account_id="page", version=1, is_connected=False)
    await queue.apply(follow_accounts, gone)
    assert reasons(await explained(queue, slot_id)) == ["ACCOUNT_NOT_CONNECTED", "NOT_DUE"]


async def test_a_draft_that_is_not_approved_is_an_obstacle(queue: "Queue") -> None:
    slot_id = await booked(queue)
    queue.drafts.unapproved = {"d1"}
    assert reasons(await explained(queue, slot_id)) == ["NOT_APPROVED", "NOT_DUE"]
    await queue.save_draft("d1", "page", version=2, is_approved=True)
    assert reasons(await explained(queue, slot_id)) == ["NOT_DUE"]


async def test_a_slot_is_explained_while_the_other_services_are_down(queue: "Queue") -> None:
    slot_id = await booked(queue)
    down = Unavailable("DOWN", "no")
    queue.accounts.fault = queue.drafts.fault = queue.schedule.fault = down
    found = await explained(queue, slot_id)
    assert (reasons(found), found.passed_times) == (["NOT_DUE"], ())
    assert "could not be read from Schedule" in found.summary


async def test_a_slot_behind_too_many_unanswered_posts_is_held_back(
    make_queue: "Callable[[Policy], Queue]",
) -> None:
    queue = make_queue(Policy(open_slots=1))
    await dispatched(queue, ["d1", "d2"])
    slots = {row.draft_id: row.id for row in await queue.rows("select draft_id, id from slot")}
    assert await queue.states() == {"d1": "SCHEDULED", "d2": "DISPATCHED"}
    assert reasons(await explained(queue, slots["d1"])) == ["HELD_BACK"]
    assert reasons(await explained(queue, slots["d2"])) == []
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.READY, 1))
    queue.now += HOUR
    await queue.hand_over.dispatch()
    assert reasons(await explained(queue, slots["d1"])) == []


async def test_an_overdue_slot_that_nothing_holds_up_waits_for_the_stream(queue: "Queue") -> None:
    slot_id = await booked(queue)
    queue.now += HOUR + timedelta(minutes=3)
    found = await explained(queue, slot_id)
    assert found.obstacles == ()
    assert "It is overdue by 3 minutes, and has not been handed to Publisher." in found.summary
    assert "Nothing is known to hold it up" in found.summary


async def test_the_reasons_of_the_posts_are_obstacles(queue: "Queue") -> None:
    await dispatched(queue)
    [command] = queue.stream.taken()
    later = queue.now + HOUR
    slot_id = command.slot_id
    assert "The post to facebook waits for Publisher's answer." in (await explained(queue, slot_id)).summary
    await queue.settle(queue.report(command, JobState.BLOCKED, 1, state_reason="NOT_APPROVED"))
    queue.drafts.unapproved = {"d1"}
    [blocked] = (await explained(queue, slot_id)).obstacles
    assert (blocked.reason, blocked.clear_time, blocked.target and blocked.target.channel) == (
        "NOT_APPROVED",
        None,
        "facebook",
    )
    limited = queue.report(command, JobState.WAITING, 2, state_reason="RATE_LIMITED", next_action_time=later)
    await queue.settle(limited)
    found = await explained(queue, slot_id)
    assert [(each.reason, each.clear_time) for each in found.obstacles] == [("RATE_LIMITED", later)]
    assert "Publisher goes on at 2026-03-02 10:00:00 UTC." in found.summary


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (JobState.PUBLISHED, "published at 2026-03-02 09:00:00 UTC (https://example.org/1)."),
        (JobState.FAILED, "The post to facebook failed: no."),
        (JobState.MISSED, "Its latest time was 2026-03-03 09:00:00 UTC."),
        (JobState.NEEDS_ATTENTION, "say so with ResolvePostJob"),
        (JobState.CANCELED, "Its targets were removed from the draft"),
    ],
)
async def test_an_ended_slot_says_what_has_happened(queue: "Queue", state: JobState, text: str) -> None:
    await dispatched(queue)
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, state, 1))
    queue.accounts.disconnected, queue.drafts.unapproved = {"page"}, {"d1"}
    asked = queue.drafts.asked
    found = await explained(queue, command.slot_id)
    assert text in found.summary
    assert (found.obstacles, queue.drafts.asked) == ((), asked)


async def test_a_slot_that_is_being_taken_back_says_so(queue: "Queue") -> None:
    await dispatched(queue)
    [command] = queue.stream.taken()
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    with pytest.raises(Unavailable):
        await Rearranging(queue).remove(command.slot_id)
    found = await explained(queue, command.slot_id)
    assert "Publisher is asked to give it back, so that it is canceled." in found.summary


async def test_a_slot_that_was_removed_says_so_and_nothing_of_its_posts(queue: "Queue") -> None:
    slot_id = await booked(queue)
    await Rearranging(queue).remove(slot_id)
    found = await explained(queue, slot_id)
    assert found.summary == (
        "Nothing was sent of draft d1 on account page for this slot, and nothing will be; its time was 2026-03-02 "
        "10:00:00 UTC. The caller chose this time. RemoveFromQueue canceled it."
    )


async def test_the_late_policy_of_the_queue_is_explained(queue: "Queue") -> None:
    slot_id = await booked(queue)
    await Pausing(queue).update(late_policy=LatePolicy(grace=HOUR, action=LateAction.RESLOT))
    assert (
        "by 2026-03-02 11:00:00 UTC, it moves to the next free slot time" in (await explained(queue, slot_id)).summary
    )


async def test_the_last_move_is_the_reason_of_the_time(queue: "Queue") -> None:
    first, second = await booked(queue, "d1"), await booked(queue, "d2", 2 * HOUR)
    await Rearranging(queue).reorder(second, first)
    assert (await explained(queue, first)).time_reason == "REORDERED"
    await Rearranging(queue).move(first, schedule_time=timestamp(START + 3 * HOUR))
    assert (await explained(queue, first)).time_reason == "MOVED"


async def test_a_slot_that_made_room_at_the_front_was_shifted(queue: "Queue") -> None:
    await queue.put_schedule("page", *(WeeklySlot(day=day, hour=12, minute=0) for day in range(7)))
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    [shifted] = await queue.add("d1")
    [front] = await queue.add("d2", place=QUEUE_PLACE_FRONT)
    assert (await explained(queue, front.id)).time_reason == "NEXT_FREE"
    found = await explained(queue, shifted.id)
    assert found.time_reason == "SHIFTED"
    assert [(each.reason, each.draft_id) for each in found.passed_times] == [("FILLED", "d2")]
