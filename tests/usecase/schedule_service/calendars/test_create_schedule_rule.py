"""Creating schedule rules: what is stored, refused and limited."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.zones import find_zone, tzdata_version
from schedule_service.adapters.postgres.schedule_rules import find_rule
from schedule_service.domain.calendars.schedule_rule import MOST_RULES, Terms
from servicekit.faults import AlreadyExists, LimitReached
from tests.usecase.schedule_service.calendars.terms import BY_RRULE, WEEKLY

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""


@pytest.mark.parametrize("terms", [WEEKLY, BY_RRULE, replace(BY_RRULE, start_time=time(0), enabled=False)])
async def test_a_rule_is_stored_with_the_given_terms(rules: "Rules", terms: Terms) -> None:
    answer = await rules.create(terms=terms)
    assert await rules.get() == answer
    async with rules.database.read() as connection:
        stored = await find_rule(connection, "acme", "r1")
    assert stored is not None
    assert stored.terms == terms
    assert (stored.version, stored.etag, stored.brand_id) == (1, answer.etag, "brand")
    assert (stored.create_time, stored.update_time, stored.tzdata_version) == (START, START, tzdata_version())


async def test_a_rule_without_an_id_gets_one(rules: "Rules") -> None:
    made = [(await rules.create("")).id for _ in range(2)]
    assert made == sorted(set(made))
    assert await rules.ids() == " ".join(made)


async def test_the_id_of_a_deleted_rule_is_refused(rules: "Rules") -> None:
    await rules.create()
    for _ in range(2):
        with pytest.raises(AlreadyExists) as refused:
            await rules.create(brand_id="other")
        assert (refused.value.reason, refused.value.metadata) == ("SCHEDULE_RULE_EXISTS", {"schedule_rule_id": "r1"})
        if await rules.ids():
            await rules.delete()
    assert len(rules.announced.events) == 2


async def test_the_limit_of_a_brand_holds_for_concurrent_creations(rules: "Rules") -> None:
    await rules.create("first", brand_id="full")
    async with rules.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into schedule_rule
                select organization_id, 'r' || n, brand_id, name, time_zone, weekly_slots, rrule, start_minute,
                    start_date, end_date, excluded_dates, channels, category_id, asset_policy, enabled,
                    tzdata_version, version, create_time, update_time, delete_time
                from schedule_rule, generate_series(2, :rules) as n
            """),
            {"rules": MOST_RULES - 2},
        )
    refused = []

    async def create(rule_id: str) -> None:
        try:
            await rules.create(rule_id, brand_id="full")
        except LimitReached as full:
            refused.append(full)

    async with asyncio.TaskGroup() as group:
        for n in range(4):
            group.create_task(create(f"late-{n}"))
    assert [(each.reason, each.metadata["limit"]) for each in refused] == [("RULES_PER_BRAND", "500")] * 2
    await rules.create("elsewhere", brand_id="other")
    await rules.delete("first")
    await rules.create("instead", brand_id="full")


async def test_the_zones_of_a_rule_are_recorded(rules: "Rules") -> None:
    await rules.create()
    await rules.update(time_zone=find_zone("Asia/Tokyo"))
    async with rules.database.read() as connection:
        kept = await connection.execute(text("select time_zone from zone_data order by time_zone"))
        assert kept.scalars().all() == ["America/New_York", "Asia/Tokyo"]
