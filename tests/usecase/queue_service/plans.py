"""Counts what statements of Queue read, in a database with many accounts."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import TextClause, text

from queue_service.adapters.postgres.plans import pin_plans_of
from servicekit.pg.session import Statement
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

ACCOUNTS, EACH = 200, 100
DUE = 5


async def crowd(queue: "Queue") -> None:
    """Fills 200 accounts with 20,000 future slots. 5 others have a slot that is due, and 5 wait for an answer."""
    pages = [f"page-{index}" for index in range(ACCOUNTS)]
    await queue.fill(pages, START + timedelta(days=1), timedelta(hours=1), EACH)
    await queue.fill([f"waiting-{index}" for index in range(DUE)], START, timedelta(hours=1), 3)
    queue.now = START
    await queue.hand_over.dispatch()
    await queue.fill([f"due-{index}" for index in range(DUE)], START, timedelta(hours=1), 3)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))


def names_of(statement: TextClause | Statement) -> Collection[str]:
    return statement.names if isinstance(statement, Statement) else statement.compile().params


async def reads(
    queue: "Queue", statement: TextClause | Statement, names: Mapping[str, object]
) -> list[tuple[str, str, int]]:
    """Returns (kind of scan, table, rows it looked at) of every scan."""
    async with queue.database.engine.connect() as connection:
        await pin_plans_of(connection)
        explained = text(f"explain (analyze, format json) {statement.text}")
        [answer] = (await connection.execute(explained, names)).scalar_one()
        await connection.rollback()
        return list(_scans(answer["Plan"]))


def _scans(plan: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    if "Relation Name" in plan and "Scan" in plan["Node Type"]:
        seen = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        yield plan["Node Type"], plan["Relation Name"], round(seen * plan["Actual Loops"])
    for below in plan.get("Plans", ()):
        yield from _scans(below)
