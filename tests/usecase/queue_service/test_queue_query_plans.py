"""Query plans: no periodic statement reads the future, the past or a whole table."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import TextClause, text

from queue_service.adapters.postgres import (
    accounts,
    connections,
    dispatch,
    drafts,
    requested_times,
    settlement,
    slots,
)
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.command import ANSWERED_DELAY, LONGEST_DELAY, OVERDUE_GRACE, REPEAT_DELAYS
from queue_service.domain.frontier import EPOCH
from servicekit.pg.session import Statement
from testkit.clocks import START
from testkit.plans import planned_on
from tests.usecase.queue_service.plans import ACCOUNTS, DUE, EACH, crowd, names_of, reads

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HORIZON = START + timedelta(minutes=1)

TENANTS = """
    insert into slot
    select 'o' || o, 's' || n, 'd' || o || n, 'a' || o, at, 'SCHEDULED', 'EXACT', 1, 0, null, at + interval '1 day', '',
        null, null, null, null, 1, '', at, at
    from generate_series(1, 2000) as o cross join generate_series(1, 10) as n
    cross join lateral (select cast(:first as timestamptz) + n * interval '1 hour' as at) as each
"""


@pytest.fixture
async def crowded(queue: "Queue") -> "Queue":
    await crowd(queue)
    return queue


def claim_names(horizon: datetime) -> dict[str, object]:
    return {
        "organization_ids": ["acme"] * DUE,
        "social_account_ids": [f"due-{index}" for index in range(DUE)],
        "late_befores": [EPOCH] * DUE,
        "now": START,
        "horizon": horizon,
        "limit": 500,
        "per_account": 4,
        "open_slots": 100,
        "retry_at": horizon + timedelta(seconds=1),
        "delay": REPEAT_DELAYS[0],
    }


def new_slot(account: str) -> dict[str, object]:
    time = START + timedelta(days=99)
    return {
        "queue_organization_ids": ["acme"],
        "queue_account_ids": [account],
        "first_times": [time],
        "oldest_releases": [""],
        "last_sequences": [1],
        "added": [1],
        "queues": 1,
        "now": START,
        "delay": REPEAT_DELAYS[0],
        "organization_ids": ["acme"],
        "ids": ["new"],
        "draft_ids": ["new"],
        "social_account_ids": [account],
        "schedule_times": [time],
        "origins": ["EXACT"],
        "not_afters": [time],
        "time_zones": [""],
        "local_dates": [None],
        "local_times": [None],
        "content_revisions": [1],
        "traceparents": [""],
        "nominals": [None],
        "tzdata_versions": [""],
        "sequences": [1],
        "target_organization_ids": ["acme"],
        "slot_ids": ["new"],
        "channels": ["facebook"],
        "destinations": [""],
    }


_WAITING: dict[str, object] = {"organization_ids": ["acme"] * 2, "ids": ["waiting-1-0", "waiting-2-0"]}
_KEYS: dict[str, object] = _WAITING | {"emissions": [1] * 2}
_FAR: dict[str, object] = {"organization_ids": ["acme"] * 2, "ids": ["page-7-50", "page-8-50"]}
_TWO: dict[str, object] = {"organization_ids": ["acme"] * 2, "ids": ["page-7-3", "page-8-4"]}
_PAUSES: dict[str, object] = {"now": START, "answered_delay": ANSWERED_DELAY, "longest_delay": LONGEST_DELAY}
_DUE: dict[str, object] = {"now": START, "horizon": HORIZON, "pool": 2000, "limit": 500, "filled": ["big"]}
STATEMENTS: dict[str, tuple[TextClause | Statement, dict[str, object]]] = {
    "next due": (dispatch._NEXT_DUE, {}),
    "next repeat": (dispatch._NEXT_REPEAT, {"stream": "PUBLISH"}),
    "due accounts": (dispatch._LOCK_DUE, _DUE),
    "claim": (dispatch._CLAIM, claim_names(HORIZON)),
    "due repeats": (
        dispatch._DUE_REPEATS,
        {"until": START + timedelta(seconds=4), "limit": 100_000, "delay": REPEAT_DELAYS[0]},
    ),
    "repeats": (
        dispatch._CLAIM_REPEATS,
        {
            **_KEYS,
            "now": START + timedelta(seconds=4),
            "delays": list(REPEAT_DELAYS),
            "answered_delay": ANSWERED_DELAY,
            "longest_delay": LONGEST_DELAY,
            "grace": OVERDUE_GRACE,
        },
    ),
    "unanswered": (dispatch._ADVANCE_UNANSWERED, {"now": START, "until": START + LONGEST_DELAY, "limit": 500}),
    "unanswered targets": (dispatch._UNANSWERED_TARGETS, _WAITING | {"answered": ["READY"]}),
    "places in line": (dispatch._PLACES, _FAR | {"ended": ["PUBLISHED", "SCHEDULED"]}),
    "put off": (dispatch._PUT_OFF, _KEYS | _PAUSES),
    "lines": (
        dispatch._ADVANCE_LINES,
        {
            "organization_ids": ["acme"],
            "social_account_ids": ["waiting-1"],
            "now": START,
            "answered_delay": ANSWERED_DELAY,
        },
    ),
    "overdue": (dispatch._OVERDUE, {}),
    "drafts and their slots": (drafts._LOCK_DRAFTS, _TWO),
    "what drafts asked for before": (requested_times._ASKED_BEFORE, _TWO),
    "live slots of drafts": (requested_times._LIVE, _TWO),
    "drafts": (drafts._FIND_DRAFTS, _TWO),
    "connected accounts": (connections._CONNECTED, {"organization_ids": ["acme"] * 2, "ids": ["page-7", "page-8"]}),
    "new slots": (slots._INSERT_SLOTS, new_slot("page-7")),
    "slots that get targets": (drafts._EXTEND_SLOTS, _TWO | {"now": START}),
    "slots by their ids": (slots._FIND_SLOTS, _TWO),
    "near": (
        slots._NEAR,
        {
            "organization_ids": ["acme"] * 8,
            "social_account_ids": ["page-7"] * 8,
            "schedule_times": [START + timedelta(days=2, hours=hour) for hour in range(8)],
            "spacing": timedelta(minutes=1),
        },
    ),
    "counted": (
        slots._COUNTED,
        {
            "organization_ids": ["acme"],
            "social_account_ids": ["page-7"],
            "dates": [START.date()],
            "starts": [START + timedelta(days=2)],
            "ends": [START + timedelta(days=3)],
            "states": ["LIVE"],
        },
    ),
    "list": (
        slots._LIST,
        {
            "organization_id": "acme",
            "states": ["SCHEDULED", "DISPATCHED"],
            "list_states": ["LIVE"],
            "dispatched_until": None,
            "end_time": None,
            "after_time": START + timedelta(days=2),
            "after_id": "",
            "size": 10,
        },
    ),
    "list of dispatched slots": (
        slots._LIST,
        {
            "organization_id": "acme",
            "states": ["DISPATCHED"],
            "list_states": ["LIVE"],
            "dispatched_until": START + timedelta(hours=23),
            "end_time": None,
            "after_time": START - timedelta(days=2),
            "after_id": "",
            "size": 10,
        },
    ),
    "list of an account": (
        slots._LIST_OF_ACCOUNT,
        {
            "organization_id": "acme",
            "social_account_id": "page-7",
            "states": ["SCHEDULED", "PUBLISHED"],
            "list_states": ["LIVE", "PUBLISHED"],
            "dispatched_until": None,
            "end_time": None,
            "after_time": START + timedelta(days=2),
            "after_id": "",
            "size": 10,
        },
    ),
}


async def test_no_statement_reads_more_than_it_needs(crowded: "Queue") -> None:
    for name, (statement, names) in STATEMENTS.items():
        scans = await reads(crowded, statement, names)
        assert scans, name
        assert {kind for kind, _, _ in scans} <= {"Index Scan", "Index Only Scan"}, (name, scans)
        assert max(rows for _, _, rows in scans) <= 40, (name, scans)


@pytest.mark.parametrize("known", [0, 60], ids=["no slots", "slots of one account"])
async def test_no_plan_of_a_claim_reads_the_slots_of_other_accounts(queue: "Queue", known: int) -> None:
    """Guards against statistics from before a backlog: all indexes look empty, and the planner takes any."""
    await queue.fill("page-0", START, timedelta(hours=1), known)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    await queue.fill([f"page-{index}" for index in range(1, ACCOUNTS)], START, timedelta(hours=1), EACH)
    async with queue.database.transaction() as tx:
        await pin_plans(tx)
        plan = await planned_on(tx.connection, dispatch._CLAIM)
    scans = _scans_of_slot(plan)
    assert len(scans) == 4
    for node in scans:
        assert node.get("Index Name") == "slot_pkey" or "(social_account_id = " in node.get("Index Cond", ""), node


async def test_many_small_tenants_do_not_spoil_the_plans_for_a_busy_account(queue: "Queue") -> None:
    """An organization or an account then looks like ten rows, so that any index that begins with it looks good."""
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text(TENANTS), {"first": START})
    async with queue.database.statement() as connection:
        await connection.execute(text("vacuum analyze slot"))
    async with queue.database.transaction() as tx:
        [counted] = _scans_of_slot(await planned_on(tx.connection, slots._COUNTED))
        await pin_plans(tx)
        [locked] = _scans_of_slot(await planned_on(tx.connection, settlement._LOCK_LIVE_PROGRESS))
    assert "(schedule_time < " in counted.get("Index Cond", ""), counted
    assert "(draft_id = " in locked.get("Index Cond", ""), locked


async def test_drafts_are_locked_with_their_own_slots_before_the_first_analyze(queue: "Queue") -> None:
    """All indexes look alike then, and one by account would have the planner read all slots of the organization."""
    async with queue.database.transaction() as tx:
        plan = await planned_on(tx.connection, drafts._LOCK_DRAFTS)
    [slots_of_draft] = _scans_of_slot(plan)
    [targets] = [node for node in plan if node.get("Relation Name") == "slot_target"]
    assert slots_of_draft["Index Name"] == "slot_by_draft"
    assert "(slot_id = " in targets["Index Cond"], targets


async def test_due_accounts_are_locked_by_their_keys_after_a_calm(crowded: "Queue") -> None:
    """Guards against statistics from a time when nothing was due: the index of due accounts looks empty."""
    async with crowded.database.statement() as connection:
        await connection.execute(text("update account_queue set next_due_time = null"))
        await connection.execute(text("vacuum analyze account_queue"))
        await connection.execute(text("update account_queue set next_due_time = :due"), {"due": START})
    async with crowded.database.transaction() as tx:
        await pin_plans(tx)
        plan = await planned_on(tx.connection, dispatch._LOCK_DUE)
    assert {node["Index Name"] for node in plan if "Index Name" in node} == {"account_queue_due", "account_queue_pkey"}
    scans = await reads(crowded, *STATEMENTS["due accounts"])
    assert max(rows for _, _, rows in scans) <= ACCOUNTS + 2 * DUE, scans


def _scans_of_slot(plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [node for node in plan if node.get("Relation Name") == "slot" and "Scan" in node["Node Type"]]


async def test_settlement_finds_its_rows_by_their_keys(crowded: "Queue") -> None:
    waiting = await crowded.rows("select * from slot where state = 'DISPATCHED'")
    some = [START] * DUE
    keys: dict[str, object] = {
        "organization_ids": [row.organization_id for row in waiting],
        "ids": [row.id for row in waiting],
        "draft_ids": [row.draft_id for row in waiting],
        "social_account_ids": [row.social_account_id for row in waiting],
        "emissions": [1] * DUE,
        "at": START,
        "until": START,
        "now": START,
        "states": ["PUBLISHED"] * DUE,
        "next_emit_ats": [None] * DUE,
        "expected_times": [None] * DUE,
        "publish_times": some,
        "target_organization_ids": [row.organization_id for row in waiting],
        "target_slot_ids": [row.id for row in waiting],
        "channels": ["facebook"] * DUE,
        "destinations": [""] * DUE,
        "post_job_ids": ["j"] * DUE,
        "job_states": ["PUBLISHED"] * DUE,
        "job_versions": [1] * DUE,
        "external_urls": [""] * DUE,
        "error_messages": [""] * DUE,
        "state_reasons": [""] * DUE,
        "target_counts": [1] * DUE,
        "taking_back": [""] * DUE,
        "revisions": [1] * DUE,
        "target_state_reasons": [""] * DUE,
        "are_answered": [True] * DUE,
        "of_another_slot": [False] * DUE,
        "sent_now": [False] * DUE,
        "next_action_times": some,
        "target_publish_times": some,
        "search_from": some,
        "full_from": some,
        "full_until": some,
        "accounts": DUE,
        "category_frontiers": ["{}"] * DUE,
    }
    for statement in (
        settlement._LOCK_SLOTS,
        settlement._LOCK_PROGRESS,
        settlement._LOCK_LIVE_PROGRESS,
        accounts._LOCK,
        settlement._SAVE_PROGRESS,
        settlement._PUBLISH,
        accounts._SAVE_FRONTIERS,
        accounts._SAVE_CATEGORY_FRONTIERS,
        dispatch._REPEAT_SOON,
    ):
        names = {name: keys[name] for name in names_of(statement)}
        scans = await reads(crowded, statement, names)
        assert {kind for kind, _, _ in scans} <= {"Index Scan", "Index Only Scan"}, (statement.text, scans)
        assert {rows for _, _, rows in scans} == {DUE}, (statement.text, scans)
