"""Query plans of zone changes: rows are found by an index, no matter what the statistics say."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import TextClause, text

from civil.zones import tzdata_version
from schedule_service.adapters.postgres import upcoming_slots, zone_changes, zone_data
from schedule_service.adapters.postgres.zone_changes import count_outdated, list_zone_releases, mark_current
from schedule_service.domain.zone_changes.zone_change import Kind
from schedule_service.domain.zone_release import ZoneRelease
from servicekit.pg.database import Database
from testkit.plans import nodes_of, planned

NOW = datetime(2026, 10, 20, tzinfo=UTC)
OLD = ZoneRelease("2024a", "America/Vancouver")
ELSEWHERE = ("account_schedule_elsewhere", "upcoming_slot_by_account")
INDEXES = {
    Kind.ACCOUNT_SCHEDULE: "account_schedule_by_law",
    Kind.SCHEDULE_RULE: "schedule_rule_by_law",
    Kind.TIMER: "timer_by_law",
}
SCANS = {"Index Scan", "Index Only Scan", "Tid Scan"}
_SCHEDULES = text("""
    insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day,
        enabled, tzdata_version, version, create_time, update_time)
    select 'org-' || n % 10, 'page-' || n, '', 'Zone/' || n % 20, '{540}', 0, true, :release, 1, :now, :now
    from generate_series(1, cast(:count as integer)) n
""")
_RULES = text("""
    insert into schedule_rule (organization_id, id, brand_id, name, time_zone, weekly_slots, rrule, excluded_dates,
        channels, category_id, asset_policy, enabled, tzdata_version, version, create_time, update_time)
    select 'org-' || n % 10, 'rule-' || n, 'b', '', 'Zone/' || n % 20, '{540}', '', '{}', '{facebook}', '', 'NONE',
        true, :release, 1, :now, :now
    from generate_series(1, cast(:count as integer)) n
""")
_TIMERS = text("""
    insert into timer (organization_id, id, topic, payload, cron, time_zone, dst_policy, misfire_policy,
        catch_up_interval, skip_after, auto_remove, paused, due_time, sleep_until, fence, attempts, fire_count,
        last_occurrence_key, tzdata_version, traceparent, version, create_time, update_time)
    select 'org-' || n % 10, 'timer-' || n, 't', '', '@daily', 'Zone/' || n % 20, 'ONCE', 'FIRE_ONCE', '1 s', '60 s',
        false, false, :now, :now, 0, 0, 0, '', :release, '', 1, :now, :now
    from generate_series(1, cast(:count as integer)) n
""")


async def fill(database: Database, count: int) -> None:
    async with database.statement() as connection:
        for statement in (_SCHEDULES, _RULES, _TIMERS):
            await connection.execute(statement, {"release": OLD.tzdata_version, "now": NOW, "count": count})
        await connection.execute(text("vacuum analyze"))


@pytest.fixture
async def few(database: Database) -> Database:
    """Stores a few rows and collects statistics, so that reading all rows seems cheaper than using an index."""
    await fill(database, 5)
    return database


@pytest.fixture
async def many(database: Database) -> Database:
    await fill(database, 20_000)
    return database


STATEMENTS: dict[str, tuple[TextClause, set[str]]] = {
    **{
        f"zone releases of {kind}": (statement, {INDEXES[kind]})
        for kind, statement in zone_changes._ZONE_RELEASES.items()
    },
    **{
        f"page of {kind}{' of one organization' * of_one}": (
            statement,
            {INDEXES[kind], *(ELSEWHERE if kind is Kind.ACCOUNT_SCHEDULE else ())},
        )
        for (kind, of_one), statement in zone_changes._PAGE.items()
    },
    **{
        f"mark {kind}{' of one organization' * of_one}": (statement, {INDEXES[kind]})
        for (kind, of_one), statement in zone_changes._MARK.items()
    },
    **{f"count {kind}": (statement, {INDEXES[kind]}) for kind, statement in zone_changes._COUNT.items()},
    "recorded zones": (zone_data._FIND_SOME, {"zone_data_pkey"}),
    "slots within": (upcoming_slots._ANY_WITHIN, {"upcoming_slot_by_account"}),
    "meant slots": (upcoming_slots._WITH_NOMINAL_TIMES, {"upcoming_slot_by_account"}),
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_plan_made_for_few_rows_uses_the_indexes(few: Database, name: str) -> None:
    statement, indexes = STATEMENTS[name]
    nodes = await planned(few, statement)
    reads = [node for node in nodes if "Relation Name" in node and node["Node Type"] != "ModifyTable"]
    assert {node["Node Type"] for node in reads} <= SCANS
    assert {node["Index Name"] for node in reads if "Index Name" in node} == indexes
    for node in reads:
        assert node["Node Type"] == "Tid Scan" or "Index Cond" in node or name.startswith("zone releases"), node


@pytest.mark.parametrize("kind", Kind)
async def test_zone_releases_are_found_without_reading_all_rows(many: Database, kind: Kind) -> None:
    explained = text(f"explain (analyze, format json) {zone_changes._ZONE_RELEASES[kind].text}")
    async with many.statement() as connection:
        assert len(await list_zone_releases(connection, kind)) == 20
        (top,) = (await connection.execute(explained)).scalar_one()
    rows = [node["Actual Rows"] * node["Actual Loops"] for node in nodes_of(top["Plan"]) if node.get("Index Name")]
    assert sum(rows) <= 40


@pytest.mark.parametrize("kind", Kind)
async def test_marking_continues_in_batches_until_nothing_is_left(many: Database, kind: Kind) -> None:
    zone_release = ZoneRelease(OLD.tzdata_version, "Zone/7")
    async with many.statement() as connection:
        marked = [await mark_current(connection, kind, zone_release, organization_id="", limit=400) for _ in range(4)]
        assert marked == [400, 400, 200, 0]
        assert ZoneRelease(tzdata_version(), "Zone/7") in await list_zone_releases(connection, kind)
        assert await count_outdated(connection, kind, most=100) == 100
        assert await count_outdated(connection, kind, most=100_000) == 19_000
