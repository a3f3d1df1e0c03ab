import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from servicekit.pg.database import Database
from servicekit.pg.inbox import Inbox
from testkit.eventually import eventually

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
INBOX = Inbox("test-events")
WAITING = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")


async def _add(database: Database, event_ids: Sequence[str], inbox: Inbox = INBOX) -> set[str]:
    async with database.transaction() as tx:
        return await inbox.add(tx, event_ids, now=NOW)


async def test_only_new_events_are_returned(database: Database) -> None:
    assert await _add(database, ["a", "b"]) == {"a", "b"}
    assert await _add(database, ["b", "c"]) == {"c"}
    assert await _add(database, []) == set()


async def test_an_event_that_a_batch_holds_twice_is_recorded_once(database: Database) -> None:
    assert await _add(database, ["a", "b", "a"]) == {"a", "b"}


async def test_each_consumer_has_its_own_rows(database: Database) -> None:
    await _add(database, ["a"])
    assert await _add(database, ["a"], Inbox("other")) == {"a"}


async def test_an_uncommitted_event_is_not_recorded(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as tx:
            await INBOX.add(tx, ["a"], now=NOW)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await _add(database, ["a"]) == {"a"}


async def test_the_second_of_two_transactions_waits_and_loses_an_event(database: Database) -> None:
    async def someone_waits() -> bool:
        async with database.read() as connection:
            return bool((await connection.execute(WAITING)).scalar_one())

    async with asyncio.TaskGroup() as group, database.transaction() as tx:
        await INBOX.add(tx, ["a", "b"], now=NOW)
        second = group.create_task(_add(database, ["c", "b"]))
        await eventually(someone_waits)
    assert second.result() == {"c"}


async def test_concurrent_batches_in_any_order_record_each_event_once(database: Database) -> None:
    numbers = [str(number) for number in range(200)]
    async with asyncio.TaskGroup() as group:
        batches = [group.create_task(_add(database, numbers[:: (-1) ** turn])) for turn in range(6)]
    taken = [event_id for batch in batches for event_id in batch.result()]
    assert sorted(taken) == sorted(numbers)
