"""Query plans of moving slots: an account's slots are moved without reading those of others."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import TextClause, text

from queue_service.adapters.postgres import relocation
from testkit.clocks import START
from tests.usecase.queue_service.plans import DUE, crowd, reads

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


@pytest.fixture
async def crowded(queue: "Queue") -> "Queue":
    await crowd(queue)
    return queue


async def test_moving_slots_of_some_accounts_reads_no_others(crowded: "Queue") -> None:
    theirs = [f"due-{index}" for index in range(DUE)]
    async with crowded.database.transaction() as tx:
        behind = text("""
            update account_queue set tzdata_version = '2026a', slots_behind = social_account_id like 'due-%'
        """)
        await tx.connection.execute(behind)
        zone = text("update slot set time_zone = 'UTC', local_date = '2026-03-02', local_time = '09:00'")
        await tx.connection.execute(zone)
    async with crowded.database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    slots = await crowded.rows("select * from slot where social_account_id = any(:theirs) order by id", theirs=theirs)
    account_keys = {"organization_ids": ["acme"] * DUE, "social_account_ids": theirs}
    keys: dict[str, object] = {
        "organization_ids": ["acme"] * len(slots),
        "ids": [row.id for row in slots],
        "schedule_times": [row.schedule_time + timedelta(minutes=7) for row in slots],
        "not_afters": [row.not_after for row in slots],
        "local_dates": [row.local_date for row in slots],
        "local_times": [row.local_time for row in slots],
        "nominals": [None] * len(slots),
        "are_moved": [True] * len(slots),
        "previous_times": [row.schedule_time for row in slots],
        "release": "2026b",
        "kept": [],
        "now": START,
    }
    wanted: list[tuple[TextClause, Mapping[str, object], int]] = [
        (relocation._LOCK_BEHIND, {"release": "2026b", "limit": 10}, DUE),
        (relocation._LOCK_OUTDATED, account_keys | {"releases": ["2026b"] * DUE}, len(slots)),
        (relocation._OTHERS, account_keys | {"releases": ["2026b"] * DUE}, len(slots)),
        (relocation._LIFT, {name: keys[name] for name in ("organization_ids", "ids")}, len(slots)),
        (relocation._PLACE, keys, len(slots)),
        (relocation._CAUGHT_UP, account_keys | {"are_changed": [True] * DUE, "epoch": START}, DUE),
    ]
    for statement, names, rows in wanted:
        scans = await reads(crowded, statement, names)
        assert {kind for kind, _, _ in scans} <= {"Index Scan", "Index Only Scan"}, (statement.text, scans)
        assert {found for _, _, found in scans} == {rows}, (statement.text, scans)


async def test_having_no_account_behind_costs_no_walk(crowded: "Queue") -> None:
    [(kind, _, rows)] = await reads(crowded, relocation._LOCK_BEHIND, {"release": "2026b", "limit": 10})
    assert (kind, rows) == ("Index Scan", 0)
    [(kind, _, rows)] = await reads(crowded, relocation._IS_ONE_BEHIND, {"release": "2026b"})
    assert (kind, rows) == ("Index Only Scan", 0)
