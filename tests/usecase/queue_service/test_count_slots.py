"""Counts of slots and accounts for operators."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application import count_slots
from queue_service.application.count_slots import CountSlots
from queue_service.domain.job import JobState
from servicekit.pg.session import Statement
from testkit.clocks import START
from tests.usecase.queue_service.steps import send_and_end

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue, Statements

HOUR = timedelta(hours=1)


@dataclass
class Stream:
    outstanding: int = 7


def counting(queue: "Queue") -> CountSlots:
    return CountSlots(database=queue.database, clock=queue.clock, commands=Stream(), policy=queue.policy)


async def numbers(queue: "Queue") -> Mapping[str, float]:
    return {each.name: each.value for each in await counting(queue).numbers()}


async def test_slots_are_counted_by_state(queue: "Queue") -> None:
    await queue.fill("a", START, HOUR, 5)
    await queue.fill("b", START, HOUR, 2)
    queue.now = START
    await queue.hand_over.dispatch()
    found = await numbers(queue)
    assert (found["slots.scheduled"], found["slots.dispatched"], found["commands.outstanding"]) == (5, 2, 7)


async def test_slots_that_have_ended_are_estimated(queue: "Queue") -> None:
    for number in range(3):
        await queue.save_draft("d1", f"page-{number}", version=number + 1, revision=number + 1)
        await send_and_end(queue, JobState.FAILED)
    assert (await numbers(queue))["slots.failed.estimate"] == 0
    async with queue.database.statement() as connection:
        await connection.exec_driver_sql("analyze slot")
    found = await numbers(queue)
    assert (found["slots.failed.estimate"], found["slots.published.estimate"]) == (3, 0)
    assert found["slots.scheduled"] == 0


async def test_the_organizations_with_the_most_slots_are_named(queue: "Queue") -> None:
    for number in range(25):
        await queue.fill("page", START, HOUR, number + 1, organization_id=f"org-{number:02}")
    found = await numbers(queue)
    named = [name.removeprefix("slots.live.") for name in found if name.startswith("slots.live.")]
    assert named == [f"org-{number:02}" for number in range(24, 4, -1)]
    assert found["slots.live.org-24"] == 25
    assert found["slots.scheduled"] == 25 * 26 / 2


PAUSE = Statement("update account_queue set pause_time = :now where social_account_id <> 'c'")
DISCONNECT = Statement(
    "update account_queue set is_connected = cast(:now as timestamptz) is null where social_account_id <> 'c'"
)
DISABLE = Statement("""
    update account_queue set schedule_version = 1, time_zone = 'UTC', enabled = cast(:now as timestamptz) is null
    where social_account_id <> 'c'
""")


@pytest.mark.parametrize(("change", "reason"), [(PAUSE, "paused"), (DISCONNECT, "disconnected"), (DISABLE, "disabled")])
async def test_accounts_that_are_held_up_are_counted(queue: "Queue", change: Statement, reason: str) -> None:
    await queue.fill(["a", "b", "c"], START, HOUR, 2)
    async with queue.database.transaction() as tx:
        await tx.execute(change, {"now": START})
    found = await numbers(queue)
    counted = {each: found[f"accounts.held_up.{each}"] for each in ("paused", "disconnected", "disabled")}
    assert counted == {"paused": 0, "disconnected": 0, "disabled": 0} | {reason: 2}


async def test_what_publisher_has_not_confirmed_is_counted(queue: "Queue") -> None:
    await queue.fill(["a", "b", "c"], START, HOUR, 2)
    async with queue.database.transaction() as tx:
        await tx.execute(Statement("update account_queue set hold_revision = 1 where social_account_id <> 'c'"))
        await tx.execute(Statement("update slot set taking_back = 'RETURN' where social_account_id = 'c'"))
    found = await numbers(queue)
    assert (found["holds.pending"], found["take_backs.pending"]) == (2, 2)


async def test_figures_are_not_counted_again_for_each_question(queue: "Queue", statements: "Statements") -> None:
    count = counting(queue)
    await count.numbers()
    statements.clear()
    await count.numbers()
    assert statements.texts == []


async def test_a_long_count_is_made_rarely(
    queue: "Queue", statements: "Statements", monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, 0.5, 0.5, 49.0, 51.0, 51.0, 51.0])
    monkeypatch.setattr(count_slots, "_now", lambda: next(ticks))
    count = counting(queue)
    await count()
    statements.clear()
    await count()
    assert statements.texts == []
    await count()
    assert statements.texts != []
