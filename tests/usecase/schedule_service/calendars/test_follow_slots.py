"""Slots as Queue announces them, in any order, and how long they are kept."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from schedule_service.adapters.postgres.upcoming_slots import find_slots_ahead
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from servicekit.pg.database import Database
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


MakeSlot = Callable[..., UpcomingSlot]


async def known(database: Database) -> list[tuple[str, str, str, int, datetime]]:
    async with database.read() as connection:
        rows = await connection.execute(
            text("""
                select organization_id, slot_id, social_account_id, revision, schedule_time
                from upcoming_slot order by organization_id, slot_id
            """)
        )
        return [tuple(row) for row in rows]


async def test_the_newest_revision_wins_in_any_order(schedules: "Schedules", a_slot: MakeSlot) -> None:
    events = [
        a_slot(slot_id=f"s{number}", revision=revision, schedule_time=START + timedelta(hours=number, days=revision))
        for number in range(30)
        for revision in (1, 2, 3)
    ]
    random.Random(7).shuffle(events)
    for first in range(0, len(events), 20):
        await schedules.receive(*events[first : first + 20])
    assert await known(schedules.database) == sorted(
        ("acme", f"s{number}", "page", 3, START + timedelta(hours=number, days=3)) for number in range(30)
    )


async def test_a_canceled_slot_counts_for_no_account_in_any_order(schedules: "Schedules", a_slot: MakeSlot) -> None:
    events = [a_slot(), a_slot(revision=2), a_slot(revision=2, is_canceled=True)]
    for number, heard in enumerate(permutations(events)):
        for event in (*heard, events[2], events[1]):
            await schedules.receive(replace(event, slot_id=f"s{number}"))
    canceled = await known(schedules.database)
    assert len(canceled) == 6
    assert {(account, revision) for _, _, account, revision, _ in canceled} == {("", 2)}
    async with schedules.database.read() as connection:
        ahead = await find_slots_ahead(connection, "acme", "page", now=START)
    assert (ahead.count, ahead.last_time) == (0, None)


async def test_a_canceled_slot_is_forgotten_after_its_time(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.receive(a_slot(is_canceled=True))
    schedules.clock.moment = START + timedelta(hours=3)
    assert not await schedules.delete_past()
    assert await known(schedules.database) == []


async def test_slots_of_two_organizations_may_have_one_id(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.receive(a_slot(revision=5), a_slot(organization_id="umbrella"))
    assert [(row[0], row[3]) for row in await known(schedules.database)] == [("acme", 5), ("umbrella", 1)]


async def test_a_redelivered_event_changes_nothing(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.receive(a_slot(), a_slot())
    await schedules.receive(a_slot())
    assert len(await known(schedules.database)) == 1


async def test_a_slot_is_deleted_an_hour_after_its_time(schedules: "Schedules", a_slot: MakeSlot) -> None:
    await schedules.receive(
        a_slot(), a_slot(slot_id="s2", schedule_time=START + timedelta(hours=1, seconds=1)), a_slot(slot_id="s3")
    )
    schedules.clock.moment = START + timedelta(hours=2) - timedelta.resolution
    assert not await schedules.delete_past()
    assert len(await known(schedules.database)) == 3
    assert not await schedules.delete_past()
    assert [row[1] for row in await known(schedules.database)] == ["s2"]


async def test_past_slots_are_deleted_in_batches_oldest_first(schedules: "Schedules", a_slot: MakeSlot) -> None:
    old = [a_slot(slot_id=f"s{n:04}", schedule_time=START - timedelta(days=1, seconds=n)) for n in range(5001)]
    await schedules.receive(*old, a_slot(slot_id="ahead"))
    assert await schedules.delete_past()
    assert [row[1] for row in await known(schedules.database)] == ["ahead", "s0000"]
    assert not await schedules.delete_past()
    assert [row[1] for row in await known(schedules.database)] == ["ahead"]


async def test_a_locked_slot_is_skipped(schedules: "Schedules", a_slot: MakeSlot) -> None:
    """Locks a past slot, as an event that moves it does: the clean-up skips it."""
    past = START - timedelta(days=1)
    await schedules.receive(a_slot(schedule_time=past), a_slot(slot_id="s2", schedule_time=past))
    async with schedules.database.transaction() as tx:
        await tx.connection.execute(text("select from upcoming_slot where slot_id = 's1' for update"))
        assert not await schedules.delete_past()
    assert [row[1] for row in await known(schedules.database)] == ["s1"]


@pytest.mark.parametrize("size", [0, 1])
async def test_empty_and_single_batches_are_applied(schedules: "Schedules", a_slot: MakeSlot, size: int) -> None:
    await schedules.receive(*[a_slot()] * size)
    assert len(await known(schedules.database)) == size
