"""ScheduleAt gives a draft a time of the caller's choice."""

import asyncio
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_ORIGIN_EXACT, QueueSlot
from servicekit.faults import InvalidField, NotFound, Refused
from testkit.clocks import START
from tests.usecase.queue_service.steps import LEAD

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LATER = START + timedelta(hours=3, seconds=17, microseconds=123456)


async def test_an_account_without_a_schedule_can_be_given_a_time(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    [slot] = await queue.at("d1", LATER)
    assert queue.time_of(slot) == LATER
    assert slot.origin == QUEUE_SLOT_ORIGIN_EXACT
    assert (slot.time_zone, slot.local_date, slot.local_time) == ("", "", "")
    assert [event.slot_id for event in await queue.announced()] == [slot.id]


@pytest.mark.parametrize(("ahead", "is_woken"), [(timedelta(0), True), (LEAD, True), (timedelta(hours=1), False)])
async def test_dispatch_is_woken_for_a_slot_that_is_due_soon(queue: "Queue", ahead: timedelta, is_woken: bool) -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", START + ahead)
    assert queue.new_slots.is_set() is is_woken


async def test_the_local_time_is_that_of_the_accounts_schedule(queue: "Queue") -> None:
    queue.schedule.zone = "Asia/Kolkata"
    await queue.put_schedule("page", WeeklySlot(day=1, hour=9, minute=0))
    await queue.save_draft("d1", "page")
    [slot] = await queue.at("d1", START + timedelta(hours=11))
    assert (slot.time_zone, slot.local_date, slot.local_time) == ("Asia/Kolkata", "2026-03-03", "01:30")


async def test_the_cap_of_the_schedule_does_not_apply(queue: "Queue") -> None:
    await queue.put_schedule("page", WeeklySlot(day=1, hour=12, minute=0), cap=1)
    for index in range(3):
        await queue.save_draft(f"d{index}", "page")
        await queue.at(f"d{index}", LATER + timedelta(minutes=index))
    assert len(await queue.times()) == 3


@pytest.mark.parametrize("seconds", [-59.999, 0, 59.999])
async def test_a_time_within_a_minute_of_a_live_slot_is_taken(queue: "Queue", seconds: float) -> None:
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page", "other")
    [slot] = await queue.at("d1", LATER, "page")
    with pytest.raises(Refused) as refused:
        await queue.at("d2", LATER + timedelta(seconds=seconds))
    assert refused.value.reason == "SLOT_TAKEN"
    assert refused.value.metadata["social_account_id"] == "page"
    assert refused.value.metadata["queue_slot_id"] == slot.id
    assert len(await queue.times()) == 1


@pytest.mark.parametrize("seconds", [-60, 60])
async def test_a_minute_away_is_free(queue: "Queue", seconds: float) -> None:
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    await queue.at("d1", LATER)
    await queue.at("d2", LATER + timedelta(seconds=seconds))
    assert len(await queue.times()) == 2


@pytest.mark.parametrize("away", [timedelta(minutes=-1, microseconds=-1), timedelta(days=730, microseconds=1)])
async def test_a_time_too_long_ago_or_too_far_ahead_is_refused(queue: "Queue", away: timedelta) -> None:
    await queue.save_draft("d1", "page")
    with pytest.raises(InvalidField) as refused:
        await queue.at("d1", START + away)
    assert [violation.field for violation in refused.value.violations] == ["schedule_time"]


@pytest.mark.parametrize("away", [timedelta(minutes=-1), timedelta(days=730)])
async def test_the_bounds_themselves_are_allowed(queue: "Queue", away: timedelta) -> None:
    await queue.save_draft("d1", "page")
    [slot] = await queue.at("d1", START + away)
    assert queue.time_of(slot) == START + away
    assert slot.not_after.ToDatetime(UTC) == START + away + timedelta(hours=24)


async def test_the_blocking_slot_is_named(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    with pytest.raises(NotFound) as missing:
        await queue.at("unknown", LATER)
    assert missing.value.reason == "DRAFT_NOT_FOUND"
    with pytest.raises(Refused) as stranger:
        await queue.at("d1", LATER, "other")
    assert stranger.value.reason == "ACCOUNT_NOT_A_TARGET"
    await queue.at("d1", LATER)
    with pytest.raises(Refused) as twice:
        await queue.at("d1", LATER + timedelta(hours=1))
    assert twice.value.reason == "ALREADY_QUEUED"


async def test_a_draft_of_another_organization_is_not_found(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    with pytest.raises(NotFound):
        await queue.at("d1", LATER, organization_id="umbrella")


async def test_a_repeated_request_gets_the_first_answer_after_its_time(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    first = await queue.at("d1", START, request_id="r1")
    queue.now = START + timedelta(hours=1)
    assert await queue.at("d1", START, request_id="r1") == first


async def test_one_of_many_callers_who_want_the_same_minute_gets_it(queue: "Queue") -> None:
    for index in range(8):
        await queue.save_draft(f"d{index}", "page")

    async def attempt(index: int) -> list[QueueSlot] | str:
        try:
            return await queue.at(f"d{index}", LATER + timedelta(seconds=7 * index))
        except Refused as refused:
            return refused.reason

    async with asyncio.TaskGroup() as group:
        attempts = [group.create_task(attempt(index)) for index in range(8)]
    answers = [each.result() for each in attempts]
    assert answers.count("SLOT_TAKEN") == 7
    assert len(await queue.times()) == 1
