"""Query plans of timers: made for few rows or for many, they use an index."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import TextClause, event, text

from schedule_service.adapters.postgres import due_timers, timer_room, timers
from schedule_service.adapters.postgres.due_timers import timer_jobs
from schedule_service.domain.timers.timer import TimerState
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from testkit.clocks import START
from testkit.plans import nodes_of, planned

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


FUTURE = 200_000
_MANY = text(f"""
    insert into timer (organization_id, id, topic, payload, fire_time, cron, time_zone, dst_policy, misfire_policy,
        catch_up_interval, skip_after, auto_remove, paused, due_time, sleep_until, fence, attempts, fire_count,
        last_occurrence_key, tzdata_version, traceparent, version, create_time, update_time)
    select case when n % 2 = 0 then 'acme' else 'org-' || n % 100 end, 'future-' || n, 'topic-' || n % 10, '', due, '',
        'UTC', 'CRON', 'FIRE_ONCE', '1 second', '60 seconds', false, n % 100 = 0, due,
        case when n % 100 > 0 then due end, 0, 0, 0, '', '2026f', '', 1, :now, :now
    from generate_series(1, {FUTURE}) n, lateral (select cast(:now as timestamptz) + n * interval '1 minute') as d (due)
""")  # noqa: S608 - a constant
KEY = {"organization_id", "id"}
JOB = {"job_id"}
STATEMENTS: Mapping[str, tuple[TextClause, set[str]]] = {
    "get": (timers._GET, KEY),
    "lock": (timers._LOCK, KEY),
    "save": (timers._SAVE, KEY),
    "record manual firing": (timers._RECORD_MANUAL_FIRING, KEY),
    "delete": (timers._DELETE, KEY),
    "list": (timers._LISTS[False, None], KEY),
    "list active": (timers._LISTS[False, TimerState.ACTIVE], KEY),
    "list paused": (timers._LISTS[False, TimerState.PAUSED], KEY),
    "list finished": (timers._LISTS[False, TimerState.FINISHED], KEY),
    "list faulty": (timers._LISTS[False, TimerState.FAULTY], KEY),
    "list of topic": (timers._LISTS[True, None], KEY | {"topic"}),
    "list active of topic": (timers._LISTS[True, TimerState.ACTIVE], KEY | {"topic"}),
    "settle": (due_timers._SETTLE, JOB),
    "remove": (due_timers._REMOVE, JOB),
    "delete finished": (timers._DELETE_FINISHED, {"finish_time"}),
    "count": (timer_room._COUNT, {"organization_id"}),
}
INDEXES = {TimerState.PAUSED: "timer_idle", TimerState.FINISHED: "timer_idle", TimerState.FAULTY: "timer_faulty"}


@pytest.fixture
async def few(timers: "Timers") -> Database:
    """Stores a few timers and collects statistics, so that reading all rows seems cheaper than using an index."""
    for number in range(5):
        await timers.create(f"t{number}", delay=timedelta(0))
    await timers.fire_due()
    async with timers.database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    return timers.database


@pytest.fixture
async def many(few: Database) -> Database:
    async with few.statement() as connection:
        await connection.execute(_MANY, {"now": START})
        await connection.execute(text("vacuum analyze timer"))
    return few


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_plan_made_for_few_timers_uses_the_whole_key(few: Database, name: str) -> None:
    check(await planned(few, STATEMENTS[name][0]), STATEMENTS[name][1])


async def test_each_statement_reads_only_its_own_among_many_timers(many: Database) -> None:
    for statement, keys in STATEMENTS.values():
        check(await planned(many, statement), keys)
    for state, index in INDEXES.items():
        assert index in {node.get("Index Name") for node in await planned(many, timers._LISTS[False, state])}
    assert "Index Only Scan" in {node["Node Type"] for node in await planned(many, timer_room._COUNT)}


async def test_locking_due_timers_reads_only_those_among_few(few: Database, timers: "Timers") -> None:
    await check_locking(few, timers)


async def test_locking_due_timers_reads_only_those_among_many(many: Database, timers: "Timers") -> None:
    await check_locking(many, timers)


async def test_a_shared_batch_reads_only_due_timers_among_many(many: Database) -> None:
    dealt = timer_jobs(many, DatabaseClock(), only=[1, 2])
    lock = dealt._statements.lock_next(200, data_is_json=False)
    for statement, index, key in (
        (due_timers._DEAL, "timer_due", "sleep_until"),
        (lock, "timer_job_id_key", "job_id"),
    ):
        scans = [node for node in await planned(many, statement) if node.get("Relation Name") == "timer"]
        scans = [scan for scan in scans if "Scan" in scan["Node Type"]]
        assert {scan.get("Index Name") for scan in scans} == {index}, scans
        assert all(key in scan["Index Cond"] for scan in scans), scans


async def check_locking(database: Database, timers: "Timers") -> None:
    await timers.create("due", delay=timedelta(0))
    now = timers.clock.moment
    jobs = timer_jobs(database, DatabaseClock())
    asked: list[tuple[str, Any]] = []
    listener = "before_cursor_execute"

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    event.listen(database.engine.sync_engine, listener, note)
    await jobs.next_due()
    assert len(await jobs.lock_next(now, now + timedelta(seconds=10), 200)) == 1
    event.remove(database.engine.sync_engine, listener, note)
    looks = [(statement, parameters) for statement, parameters in asked if "sleep_until" in statement]
    assert len(looks) == 2
    for statement, parameters in looks:
        # With later times, because EXPLAIN ANALYZE executes the statement a second time.
        later = [value + timedelta(seconds=10) if isinstance(value, datetime) else value for value in parameters]
        nodes = await analyzed(database, statement, later)
        reads = [node for node in nodes if node.get("Index Name") == "timer_due"]
        assert reads
        assert {node["Actual Rows"] for node in reads} == {1}
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]


def check(nodes: list[dict[str, Any]], keys: set[str]) -> None:
    scans = [node for node in nodes if node.get("Relation Name") == "timer" and "Scan" in node["Node Type"]]
    scans = [scan for scan in scans if scan["Node Type"] != "Tid Scan"]
    assert scans
    assert {scan["Node Type"] for scan in scans} <= {"Index Scan", "Index Only Scan"}, scans
    # The first scan finds the rows; a listing then reads them by their ids.
    assert all(key in scans[0].get("Index Cond", "") for key in keys), scans
    for scan in scans[1:]:
        if scan["Index Name"] == "timer_faulty":  # the few faulty timers, which a listing leaves out
            continue
        assert all(key in scan.get("Index Cond", "") for key in KEY), scan
    assert not [node for node in nodes if node["Node Type"] in {"Hash Join", "Sort"}]


async def analyzed(database: Database, statement: str, values: Sequence[object]) -> list[dict[str, Any]]:
    """Explains a statement under the settings of a service, with a plan for any value."""
    async with database.statement() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        (top,) = await raw.fetchval(f"explain (analyze, format json) {statement}", *values)
    return list(nodes_of(top["Plan"]))
