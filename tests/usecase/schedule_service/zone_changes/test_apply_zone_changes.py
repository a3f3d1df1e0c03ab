"""ApplyZoneChanges announces what has moved exactly once."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from civil.zones import zone_data
from schedule_service.domain.zone_changes.zone_change import Kind
from tests.usecase.schedule_service.zone_changes.vancouver import BERLIN, MOVED, NEW, NOW, OLD, VANCOUVER, ids

if TYPE_CHECKING:
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


async def test_moved_rows_are_announced_once_and_the_rest_only_marked(drift: "Drift") -> None:
    before = await drift.schedule("page")
    still = await drift.schedule("still", BERLIN)
    empty = await drift.schedule("empty", weekly_slots=())
    rule, timer = await drift.rule(), await drift.timer()
    applied = await drift.apply()
    assert applied.done
    assert applied.moved == {Kind.ACCOUNT_SCHEDULE: 1, Kind.SCHEDULE_RULE: 1, Kind.TIMER: 1}

    (schedule_event,) = drift.announced.schedules
    announced = schedule_event.account_schedule
    assert (announced.social_account_id, announced.version, announced.tzdata_version) == ("page", 2, NEW)
    assert not schedule_event.deleted
    (rule_event,) = drift.announced.rules
    assert (rule_event.schedule_rule.version, rule_event.schedule_rule.tzdata_version) == (2, NEW)

    assert await drift.stored_schedule() == replace(before, version=2, tzdata_version=NEW, update_time=NOW)
    assert await drift.stored_schedule("still") == replace(still, tzdata_version=NEW)
    assert await drift.stored_schedule("empty") == replace(empty, tzdata_version=NEW)
    assert await drift.stored_rule() == replace(rule, version=2, tzdata_version=NEW, update_time=NOW)
    moved = await drift.stored_timer()
    assert moved == replace(timer, due_time=MOVED.new, sleep_until=MOVED.new, tzdata_version=NEW, fence=moved.fence)
    assert moved.fence > timer.fence

    assert await drift.listed() == []
    again = await drift.apply()
    assert (again.done, again.moved.total()) == (True, 0)
    assert len(drift.announced.schedules) == len(drift.announced.rules) == 1
    assert (await drift.stored_schedule()).version == 2


async def test_changes_can_be_applied_to_one_organization(drift: "Drift") -> None:
    for organization in ("acme", "umbrella"):
        await drift.schedule(organization=organization)
        await drift.schedule("still", BERLIN, organization=organization)
    assert (await drift.apply("umbrella")).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [each.organization_id for each in drift.announced.schedules] == ["umbrella"]
    assert (await drift.stored_schedule("still")).tzdata_version == OLD
    assert (await drift.stored_schedule("still", "umbrella")).tzdata_version == NEW
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]


async def test_the_current_zones_of_updated_rows_are_recorded(drift: "Drift") -> None:
    await drift.schedule()
    await drift.schedule("still", BERLIN)
    await drift.apply()
    async with drift.database.read() as connection:
        recorded = await connection.execute(
            text("select time_zone, data from zone_data where tzdata_version = :new"), {"new": NEW}
        )
        assert {row.time_zone: row.data for row in recorded} == {zone: zone_data(zone) for zone in (VANCOUVER, BERLIN)}


async def test_a_call_that_runs_out_of_time_is_continued_by_the_next(drift: "Drift") -> None:
    for number in range(450):
        await drift.schedule(f"page-{number:03}")
    calls = [await drift.apply(patience=0.0) for _ in range(4)]
    assert [call.moved[Kind.ACCOUNT_SCHEDULE] for call in calls] == [200, 200, 50, 0]
    assert [call.done for call in calls] == [False, False, False, True]
    names = [each.account_schedule.social_account_id for each in drift.announced.schedules]
    assert len(names) == len(set(names)) == 450


async def test_concurrent_calls_and_puts_announce_each_schedule_once(drift: "Drift") -> None:
    accounts = [f"page-{number:03}" for number in range(250)]
    for account in accounts:
        await drift.schedule(account)
    for number in range(30):
        await drift.rule(f"rule-{number}")
        await drift.timer(f"timer-{number}")
    touched = accounts[::10]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(drift.apply()) for _ in range(2)]
        for account in touched:
            group.create_task(drift.put(account))
    moved = calls[0].result().moved + calls[1].result().moved
    assert moved[Kind.SCHEDULE_RULE] == moved[Kind.TIMER] == 30
    versions: dict[str, list[int]] = {account: [] for account in accounts}
    for each in drift.announced.schedules:
        assert each.account_schedule.tzdata_version == NEW
        versions[each.account_schedule.social_account_id].append(each.account_schedule.version)
    for account, announced in versions.items():
        # A put announces its change, whether before or after.
        assert sorted(announced) in ([[2], [2, 3]] if account in touched else [[2]])
    assert moved[Kind.ACCOUNT_SCHEDULE] == sum(map(len, versions.values())) - len(touched)
    assert len({each.schedule_rule.id for each in drift.announced.rules}) == len(drift.announced.rules) == 30
    assert await drift.listed() == []
