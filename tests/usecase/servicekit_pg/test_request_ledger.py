import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from servicekit.faults import InvalidField
from servicekit.pg.database import Database
from servicekit.pg.ledger import Remembered, RequestKey, RequestLedger
from testkit.eventually import eventually

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LEDGER = RequestLedger()
WAITING = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")


def _key(
    request_id: str = "r1", *, organization: str = "o", method: str = "Add", digest: bytes = b"same"
) -> RequestKey:
    return RequestKey(organization_id=organization, method=method, request_id=request_id, request_digest=digest)


async def _recall(database: Database, key: RequestKey) -> Remembered | None:
    async with database.transaction() as tx:
        return await LEDGER.recall(tx, key, now=NOW)


async def _answer(database: Database, key: RequestKey, response: bytes) -> Remembered | None:
    async with database.transaction() as tx:
        past = await LEDGER.recall(tx, key, now=NOW)
        if past is None:
            await LEDGER.answer(tx, key, response)
        return past


async def _rows(database: Database) -> int:
    async with database.read() as connection:
        return int((await connection.execute(text("select count(*) from request_ledger"))).scalar_one())


async def test_the_first_call_is_not_remembered_and_the_second_gets_its_answer(database: Database) -> None:
    assert await _answer(database, _key(), b"answer") is None
    assert await _answer(database, _key(), b"other") == Remembered(intention=None, response=b"answer")


async def test_another_request_under_the_same_id_is_refused(database: Database) -> None:
    await _answer(database, _key(), b"answer")
    with pytest.raises(InvalidField) as caught:
        await _recall(database, _key(digest=b"different"))
    assert caught.value.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize("other", [_key("r2"), _key(organization="p"), _key(method="Remove")])
async def test_ids_belong_to_an_organization_and_a_method(database: Database, other: RequestKey) -> None:
    await _answer(database, _key(), b"answer")
    assert await _recall(database, other) is None


async def test_a_call_without_an_id_is_not_remembered(database: Database) -> None:
    for _ in range(2):
        async with database.transaction() as tx:
            assert await LEDGER.recall(tx, _key(""), now=NOW) is None
            await LEDGER.intend(tx, _key(""), b"intention")
            await LEDGER.answer(tx, _key(""), b"answer")
    assert await _rows(database) == 0


async def test_a_call_that_fails_leaves_no_trace(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as tx:
            await LEDGER.recall(tx, _key(), now=NOW)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await _rows(database) == 0
    assert await _answer(database, _key(), b"answer") is None


async def _someone_waits(database: Database) -> bool:
    async with database.read() as connection:
        return bool((await connection.execute(WAITING)).scalar_one())


async def test_a_concurrent_call_waits_and_sees_the_answer(database: Database) -> None:
    async with asyncio.TaskGroup() as group, database.transaction() as tx:
        assert await LEDGER.recall(tx, _key(), now=NOW) is None
        second = group.create_task(_answer(database, _key(), b"second"))
        await eventually(lambda: _someone_waits(database))
        await LEDGER.answer(tx, _key(), b"first")
    assert second.result() == Remembered(intention=None, response=b"first")


async def test_a_concurrent_call_takes_the_place_of_one_that_failed(database: Database) -> None:
    async def fail(group: asyncio.TaskGroup, meeting: list[asyncio.Task[Remembered | None]]) -> None:
        async with database.transaction() as tx:
            await LEDGER.recall(tx, _key(), now=NOW)
            meeting.append(group.create_task(_answer(database, _key(), b"second")))
            await eventually(lambda: _someone_waits(database))
            raise LookupError

    second: list[asyncio.Task[Remembered | None]] = []
    async with asyncio.TaskGroup() as group:
        with pytest.raises(LookupError):
            await fail(group, second)
    assert second[0].result() is None
    assert await _recall(database, _key()) == Remembered(intention=None, response=b"second")


async def test_many_concurrent_calls_do_the_work_once(database: Database) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(_answer(database, _key(), f"{number}".encode())) for number in range(20)]
    pasts = [call.result() for call in calls]
    assert pasts.count(None) == 1
    assert len({past.response for past in pasts if past}) == 1


async def test_an_intention_outlives_the_process_that_had_it(database: Database) -> None:
    async with database.transaction() as tx:
        await LEDGER.recall(tx, _key(), now=NOW)
        await LEDGER.intend(tx, _key(), b"hold the account")

    async with database.transaction() as tx:
        assert await LEDGER.recall(tx, _key(), now=NOW) == Remembered(intention=b"hold the account", response=None)
        await LEDGER.answer(tx, _key(), b"held")
    assert await _recall(database, _key()) == Remembered(intention=b"hold the account", response=b"held")


async def test_a_row_that_the_clean_up_takes_meanwhile_is_taken_anew(database: Database) -> None:
    await _answer(database, _key(), b"answer")
    async with asyncio.TaskGroup() as group, database.transaction() as cleaning:
        await cleaning.connection.execute(text("delete from request_ledger"))
        again = group.create_task(_answer(database, _key(), b"again"))
        await eventually(lambda: _someone_waits(database))
    assert again.result() is None
