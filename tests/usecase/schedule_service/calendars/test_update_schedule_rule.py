"""Changing schedule rules: versions, announcements and refusals."""

import asyncio
from datetime import UTC, date, time, timedelta
from typing import TYPE_CHECKING

import pytest

from servicekit.faults import Conflict, InvalidField

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


async def test_every_change_is_announced_in_full(rules: "Rules") -> None:
    created = await rules.create()
    updated = await rules.update(name="Other")
    await rules.delete()
    assert rules.announced.subjects == ["events.schedule.schedule_rule"] * 3
    first, second, third = rules.announced.events
    assert (first.schedule_rule, first.deleted) == (created, False)
    assert (second.schedule_rule, second.deleted) == (updated, False)
    assert (third.schedule_rule.name, third.schedule_rule.version, third.deleted) == ("Other", 3, True)


async def test_an_update_without_a_change_is_not_announced(rules: "Rules") -> None:
    created = await rules.create(terms=rules.by_rrule)
    rules.clock.moment += timedelta(hours=1)
    assert await rules.update(name=rules.by_rrule.name, rrule="BYDAY=1TU;FREQ=MONTHLY;INTERVAL=1") == created
    assert len(rules.announced.events) == 1
    assert await rules.get() == created


async def test_a_change_makes_a_new_version_with_another_etag(rules: "Rules") -> None:
    created = await rules.create()
    rules.clock.moment += timedelta(hours=1)
    updated = await rules.update(excluded_dates=(), end_date=None, start_date=date(2026, 4, 1))
    assert (updated.version, list(updated.excluded_dates), updated.end_date) == (2, [], "")
    assert updated.start_date == "2026-04-01"
    assert updated.etag != created.etag
    assert (updated.create_time, updated.update_time.ToDatetime(UTC)) == (created.create_time, rules.clock.moment)
    assert await rules.get() == updated


async def test_a_rule_changes_between_weekly_slots_and_rrule(rules: "Rules") -> None:
    await rules.create()
    monthly = await rules.update(weekly_slots=(), rrule="FREQ=MONTHLY;BYMONTHDAY=-1", start_time=time(18))
    assert (monthly.start_date, monthly.start_time.hour, len(monthly.weekly_slots)) == ("2026-03-02", 18, 0)
    weekly = await rules.update(weekly_slots=rules.weekly.weekly_slots, rrule="")
    assert (weekly.rrule, weekly.HasField("start_time"), len(weekly.weekly_slots)) == ("", False, 2)


async def test_a_refused_change_is_not_stored_or_remembered(rules: "Rules") -> None:
    created = await rules.create()
    with pytest.raises(InvalidField):
        await rules.update(name="Other", weekly_slots=(), request_id="q1")
    with pytest.raises(Conflict):
        await rules.update(name="Other", etag="0123456789abcdef", request_id="q1")
    with pytest.raises(Conflict):
        await rules.delete(etag="0123456789abcdef")
    assert await rules.get() == created
    assert len(rules.announced.events) == 1
    # The request is not remembered either.
    assert (await rules.update(name="Other", etag=created.etag, request_id="q1")).version == 2


async def test_concurrent_changes_get_a_version_each(rules: "Rules") -> None:
    await rules.create()
    async with asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(rules.update(name=f"n{n}"))
    assert sorted(each.schedule_rule.version for each in rules.announced.events) == list(range(1, 10))
    assert (await rules.get()).version == 9
