"""Query plans: one that was made while the tables were small must be right for large ones."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import TextClause, text

from schedule_service.adapters.postgres import account_schedules, upcoming_slots
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from servicekit.pg.database import Database
from testkit.clocks import START
from testkit.plans import nodes_of, planned

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


@pytest.fixture
async def small(schedules: "Schedules", a_slot: Callable[..., UpcomingSlot]) -> Database:
    """Stores a few rows and collects statistics, so that reading all rows seems cheaper than using an index."""
    for number in range(5):
        await schedules.put(social_account_id=f"page-{number}")
        await schedules.receive(a_slot(slot_id=f"s{number}"))
    async with schedules.database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    return schedules.database


@pytest.mark.parametrize(
    ("statement", "table", "index", "keys"),
    [
        (account_schedules._FIND, "account_schedule", None, ["organization_id", "social_account_id"]),
        (account_schedules._LAST, "account_schedule", None, ["organization_id", "social_account_id"]),
        (
            account_schedules._PAGE,
            "account_schedule",
            "account_schedule_live",
            ["organization_id", "social_account_id"],
        ),
        (
            upcoming_slots._AHEAD,
            "upcoming_slot",
            "upcoming_slot_by_account",
            ["organization_id", "social_account_id", "schedule_time"],
        ),
        (upcoming_slots._DELETE_PAST, "upcoming_slot", "upcoming_slot_age", ["schedule_time"]),
    ],
    ids=["find", "last", "page", "ahead", "delete past"],
)
async def test_a_plan_made_for_small_tables_uses_the_whole_key(
    small: Database, statement: TextClause, table: str, index: str | None, keys: list[str]
) -> None:
    plan = await planned(small, statement)
    scans = [node for node in plan if node.get("Relation Name") == table and node["Node Type"] in INDEX_SCANS]
    assert scans
    assert not [node for node in plan if node["Node Type"] in {"Seq Scan", "Sort", "Bitmap Heap Scan"}]
    for scan in scans:
        assert all(key in scan["Index Cond"] for key in keys), scan
        assert index in {None, scan["Index Name"]}


INDEX_SCANS = {"Index Scan", "Index Only Scan"}


async def test_a_deletion_reads_no_more_slots_than_it_counts(
    schedules: "Schedules", a_slot: Callable[..., UpcomingSlot]
) -> None:
    await schedules.receive(
        *(a_slot(slot_id=f"s{n}", schedule_time=START + timedelta(minutes=n - 5000)) for n in range(10_000))
    )
    names = {"organization_id": "acme", "social_account_id": "page", "now": START, "most": 1000}
    async with schedules.database.statement() as connection:
        explained = text(f"explain (analyze, format json) {upcoming_slots._AHEAD.text}")
        (top,) = (await connection.execute(explained, names)).scalar_one()
    rows = [node["Actual Rows"] for node in nodes_of(top["Plan"]) if node.get("Relation Name") == "upcoming_slot"]
    assert sorted(rows) == [1, 1000]
