"""Deleting account schedules: what refuses it, what remains, and what follows."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from schedule_service.domain.calendars.upcoming_slot import MOST_COUNTED, UpcomingSlot
from servicekit.faults import Conflict, Fault, InvalidField, NotFound, Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


MakeSlot = Callable[..., UpcomingSlot]


async def test_a_deleted_schedule_is_announced_as_deleted(schedules: "Schedules") -> None:
    schedule = await schedules.put()
    schedules.clock.moment = START + timedelta(hours=2)
    await schedules.delete(etag=schedule.etag)
    with pytest.raises(NotFound) as refusal:
        await schedules.get()
    assert refusal.value.reason == "SCHEDULE_NOT_FOUND"
    put, deleted = schedules.announced.events
    assert (put.deleted, deleted.deleted) == (False, True)
    last = deleted.account_schedule
    assert last.version == 2
    assert last.update_time.ToDatetime(UTC) > START + timedelta(hours=2)
    assert without_edition(last) == without_edition(schedule)
    assert schedules.announced.subjects[1] == "events.schedule.account_schedule"


async def test_a_second_deletion_finds_no_schedule(schedules: "Schedules") -> None:
    with pytest.raises(NotFound):
        await schedules.delete()
    await schedules.put()
    await schedules.delete()
    with pytest.raises(NotFound):
        await schedules.delete(force=True)
    assert len(schedules.announced.events) == 2


async def test_versions_continue_after_a_deletion(schedules: "Schedules") -> None:
    first = await schedules.put()
    await schedules.delete()
    again = await schedules.put()
    assert again.version == 3
    assert again.create_time.ToNanoseconds() > first.create_time.ToNanoseconds()
    assert again.etag != first.etag
    assert await schedules.get() == again
    assert [event.account_schedule.version for event in schedules.announced.events] == [1, 2, 3]


async def test_an_etag_from_before_a_deletion_is_stale_after_it(schedules: "Schedules") -> None:
    first = await schedules.put()
    await schedules.delete()
    with pytest.raises(Conflict):
        await schedules.put(etag=first.etag)
    await schedules.put()
    with pytest.raises(Conflict):
        await schedules.delete(etag=first.etag)


async def test_a_stale_etag_deletes_nothing(schedules: "Schedules", a_slot: MakeSlot) -> None:
    first = await schedules.put()
    second = await schedules.put(replace(schedules.timetable, enabled=False))
    await schedules.receive(a_slot())
    for force in (False, True):
        with pytest.raises(Conflict) as refusal:
            await schedules.delete(etag=first.etag, force=force)
        assert refusal.value.reason == "ETAG_MISMATCH"
    assert await schedules.get() == second
    assert len(schedules.announced.events) == 2


async def test_upcoming_slots_keep_a_schedule(schedules: "Schedules", a_slot: MakeSlot) -> None:
    schedule = await schedules.put()
    await schedules.receive(a_slot(), a_slot(slot_id="s2", schedule_time=START + timedelta(days=40, seconds=30)))
    with pytest.raises(Refused) as refusal:
        await schedules.delete()
    assert refusal.value.reason == "SCHEDULE_HAS_SLOTS"
    assert refusal.value.metadata == {
        "social_account_id": "page",
        "slot_count": "2",
        "latest_schedule_time": "2026-04-11T09:00:30Z",
    }
    assert await schedules.get() == schedule
    assert len(schedules.announced.events) == 1


async def test_force_deletes_a_schedule_with_upcoming_slots(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.put()
    await schedules.receive(a_slot())
    await schedules.delete(force=True)
    with pytest.raises(NotFound):
        await schedules.get()


async def test_foreign_and_past_slots_do_not_keep_a_schedule(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.put()
    await schedules.receive(
        a_slot(organization_id="umbrella"),
        a_slot(slot_id="s2", social_account_id="other"),
        a_slot(slot_id="s3", schedule_time=START),
    )
    await schedules.delete()


async def test_a_slot_keeps_the_schedule_until_its_time(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.put()
    await schedules.receive(a_slot())
    schedules.clock.moment = START + timedelta(hours=1) - 2 * timedelta.resolution
    with pytest.raises(Refused):
        await schedules.delete()
    schedules.clock.moment = START + timedelta(hours=1)
    await schedules.delete()


async def test_counting_stops_at_its_limit(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.put()
    many = range(MOST_COUNTED + 5)
    await schedules.receive(
        *(a_slot(slot_id=f"s{n}", schedule_time=START + timedelta(minutes=1 + n)) for n in many),
    )
    with pytest.raises(Refused) as refusal:
        await schedules.delete()
    assert refusal.value.metadata["slot_count"] == str(MOST_COUNTED)
    assert refusal.value.metadata["latest_schedule_time"] == "2026-03-03T01:45:00Z"


async def test_a_repeated_deletion_gets_the_first_answer(schedules: "Schedules") -> None:
    await schedules.put()
    await schedules.delete(request_id="r1", digest=b"one")
    again = await schedules.put()
    await schedules.delete(request_id="r1", digest=b"one")
    assert await schedules.get() == again
    with pytest.raises(InvalidField) as refusal:
        await schedules.delete(request_id="r1", digest=b"another")
    assert refusal.value.reason == "REQUEST_ID_REUSED"
    assert len(schedules.announced.events) == 3


async def test_a_refused_deletion_is_not_remembered(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.put()
    await schedules.receive(a_slot())
    with pytest.raises(Refused):
        await schedules.delete(request_id="r1")
    schedules.clock.moment = START + timedelta(hours=3)
    await schedules.delete(request_id="r1")


async def test_one_of_many_concurrent_deletions_finds_the_schedule(schedules: "Schedules") -> None:
    await schedules.put()
    outcomes: list[Fault | None] = []

    async def attempt() -> None:
        try:
            await schedules.delete()
        except NotFound as gone:
            outcomes.append(gone)
        else:
            outcomes.append(None)

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(attempt())
    assert outcomes.count(None) == 1
    assert [event.account_schedule.version for event in schedules.announced.events] == [1, 2]


def without_edition(schedule: AccountSchedule) -> AccountSchedule:
    bare = AccountSchedule()
    bare.CopyFrom(schedule)
    for field in ("etag", "version", "update_time"):
        bare.ClearField(field)
    return bare
