"""Listing schedule rules."""

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


async def test_rules_are_listed_by_id_for_one_or_all_brands(rules: "Rules") -> None:
    for rule_id, brand in (("c", "x"), ("a", "y"), ("b", "x"), ("d", "y")):
        await rules.create(rule_id, brand_id=brand)
    assert await rules.ids() == "a b c d"
    assert await rules.ids("x") == "b c"
    assert await rules.ids(after="b", size=1) == "c"
    assert await rules.ids("y", after="a") == "d"
    assert await rules.ids("z") == ""


async def test_no_more_large_rules_are_read_than_fit_a_response(rules: "Rules") -> None:
    # A response fits about a dozen of them; reading two hundred would block every other call.
    slots = tuple(
        WeeklySlot(day=day, hour=hour, minute=minute) for day in range(5) for hour in (10, 11) for minute in range(50)
    )
    dates = tuple(date(2027, 1, 1) + timedelta(days=n) for n in range(1000))
    made = [f"r{number:02}" for number in range(30)]
    for rule_id in made:
        await rules.create(rule_id, replace(rules.weekly, weekly_slots=slots, excluded_dates=dates))
    first = (await rules.ids(size=201)).split()
    assert 15 < len(first) < 25
    rest = (await rules.ids(size=201, after=first[-1], brand_id="brand")).split()
    assert first + rest == made
