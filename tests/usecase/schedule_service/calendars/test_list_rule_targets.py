"""Listing the targets of stored rules."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


async def test_targets_are_listed_for_thirty_days_from_now(rules: "Rules") -> None:
    await rules.create("r1")
    await rules.create("r2", rules.by_rrule)
    await rules.create("off", replace(rules.weekly, enabled=False))
    await rules.create("theirs", brand_id="other")
    keys = [target.key for target in (await rules.targets()).targets]
    # Saturdays at 23:59 and Sundays at 00:00, and the Tuesday of the monthly rule.
    assert keys[:3] == ["r2/2026-03-03/23:59", "r1/2026-03-07/23:59", "r1/2026-03-08/00:00"]
    assert keys[-1] == "r1/2026-03-29/00:00"
    assert len(keys) == 9


async def test_every_rule_of_a_large_brand_has_its_targets(rules: "Rules") -> None:
    sunday = replace(rules.weekly, weekly_slots=(WeeklySlot(day=0, hour=12, minute=0),))
    names = [f"r{n:03}" for n in range(103)]
    for name in names:
        await rules.create(name, sunday)
    page = await rules.targets(size=200)
    assert [target.key for target in page.targets[: len(names)]] == [f"{name}/2026-03-08/12:00" for name in names]


async def test_all_pages_cover_the_span_of_the_first(rules: "Rules") -> None:
    await rules.create()
    whole = (await rules.targets()).targets
    first = await rules.targets(size=3)
    assert first.rest is not None
    rules.clock.moment += timedelta(days=3)
    second = await rules.targets(rest=first.rest)
    assert first.targets + second.targets == whole
    assert second.rest is None


async def test_a_target_in_a_gap_keeps_its_key(rules: "Rules") -> None:
    await rules.create(terms=replace(rules.weekly, weekly_slots=(WeeklySlot(day=0, hour=2, minute=30),)))
    (target,) = (await rules.targets(horizon=timedelta(days=7))).targets
    assert (target.key, target.instant) == ("r1/2026-03-08/02:30", datetime(2026, 3, 8, 7, 30, tzinfo=UTC))
    assert target.local == datetime(2026, 3, 8, 3, 30)
