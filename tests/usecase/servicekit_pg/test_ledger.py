import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from sqlalchemy import text

from servicekit.faults import InvalidField
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Begun, Call, RequestLedger, mutation
from testkit.calls import call
from testkit.eventually import eventually

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WAITING = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")


def _call(request_id: str = "r1", *, organization: str = "o", method: str = "Add", digest: bytes = b"same") -> Any:
    return call(method, organization_id=organization, request_id=request_id, digest=digest)


class _Work:
    """Work that counts how often it is done."""

    def __init__(self, result: str = "done") -> None:
        self.result = result
        self.times = 0

    async def __call__(self, tx: Transaction, now: datetime) -> str:
        self.times += 1
        return self.result


async def _fail(tx: Transaction, now: datetime) -> str:
    raise LookupError


@pytest.fixture
def ledger(database: Database) -> RequestLedger:
    return RequestLedger(database, DatabaseClock())


async def _rows(database: Database) -> int:
    async with database.read() as connection:
        return int((await connection.execute(text("select count(*) from request_ledger"))).scalar_one())


async def _someone_waits(database: Database) -> bool:
    async with database.read() as connection:
        return bool((await connection.execute(WAITING)).scalar_one())


async def test_a_repeated_call_gets_the_first_answer_and_does_no_work(ledger: RequestLedger) -> None:
    first, second = _Work("first"), _Work("second")
    assert await ledger.once(_call(), first) == "first"
    assert await ledger.once(_call(), second) == "first"
    assert (first.times, second.times) == (1, 0)


async def test_an_empty_result_is_an_answer_too(ledger: RequestLedger) -> None:
    work = _Work("")
    for _ in range(2):
        assert await ledger.once(_call(), work) == ""
    assert work.times == 1


async def test_another_request_under_the_same_id_is_refused(ledger: RequestLedger) -> None:
    await ledger.once(_call(), _Work())
    with pytest.raises(InvalidField) as caught:
        await ledger.once(_call(digest=b"different"), _Work())
    assert caught.value.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize("other", [_call("r2"), _call(organization="p"), _call(method="Remove")])
async def test_ids_belong_to_an_organization_and_a_method(ledger: RequestLedger, other: Call[str, str]) -> None:
    await ledger.once(_call(), _Work())
    assert await ledger.once(other, _Work("its own")) == "its own"


async def test_a_call_without_an_id_is_carried_out_each_time(ledger: RequestLedger, database: Database) -> None:
    work = _Work()
    for _ in range(2):
        await ledger.once(_call(""), work)
    assert work.times == 2
    assert await _rows(database) == 0


async def test_a_call_that_fails_leaves_no_trace(ledger: RequestLedger, database: Database) -> None:
    with pytest.raises(LookupError):
        await ledger.once(_call(), _fail)
    assert await _rows(database) == 0
    assert await ledger.once(_call(), _Work("done")) == "done"


async def test_work_and_answer_are_committed_together(ledger: RequestLedger, database: Database) -> None:
    async def work(tx: Transaction, now: datetime) -> str:
        await tx.connection.execute(text("insert into inbox values ('c', 'e', :now)"), {"now": now})
        assert await _rows(database) == 0
        return "done"

    await ledger.once(_call(), work)
    async with database.read() as connection:
        assert (await connection.execute(text("select count(*) from inbox"))).scalar_one() == 1
    assert await _rows(database) == 1


async def test_a_concurrent_call_waits_and_gets_the_answer(ledger: RequestLedger, database: Database) -> None:
    second = _Work("second")
    async with asyncio.TaskGroup() as group, database.transaction() as tx:
        assert await ledger.recall(tx, _call(), now=NOW) is None
        waiting = group.create_task(ledger.once(_call(), second))
        await eventually(lambda: _someone_waits(database))
        await ledger.answer(tx, _call(), "first")
    assert waiting.result() == "first"
    assert second.times == 0


async def test_a_concurrent_call_takes_the_place_of_one_that_failed(ledger: RequestLedger, database: Database) -> None:
    async def fail(group: asyncio.TaskGroup, meeting: list[asyncio.Task[str]]) -> None:
        async with database.transaction() as tx:
            await ledger.recall(tx, _call(), now=NOW)
            meeting.append(group.create_task(ledger.once(_call(), _Work("second"))))
            await eventually(lambda: _someone_waits(database))
            raise LookupError

    second: list[asyncio.Task[str]] = []
    async with asyncio.TaskGroup() as group:
        with pytest.raises(LookupError):
            await fail(group, second)
    assert second[0].result() == "second"


async def test_many_concurrent_calls_do_the_work_once(ledger: RequestLedger) -> None:
    work = _Work()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(ledger.once(_call(), work)) for _ in range(20)]
    assert {each.result() for each in calls} == {"done"}
    assert work.times == 1


async def test_a_flow_may_commit_before_it_answers(ledger: RequestLedger, database: Database) -> None:
    for _ in range(2):
        async with database.transaction() as tx:
            assert await ledger.recall(tx, _call(), now=NOW) is None
    async with database.transaction() as tx:
        assert await ledger.recall(tx, _call(), now=NOW) is None
        await ledger.answer(tx, _call(), "at last")
    assert await ledger.once(_call(), _Work()) == "at last"


async def test_a_flow_learns_that_an_earlier_attempt_has_begun(ledger: RequestLedger, database: Database) -> None:
    later = NOW + timedelta(seconds=1)
    for first in (_call(""), _call()):
        async with database.transaction() as tx:
            assert await ledger.begin(tx, first, now=NOW) == Begun()
    async with database.transaction() as tx:
        assert await ledger.begin(tx, _call(), now=later) == Begun(since=NOW)
        await ledger.answer(tx, _call(), "at last")
        assert await ledger.begin(tx, _call(), now=later) == Begun(answer="at last", since=NOW)


async def test_a_look_takes_nothing(ledger: RequestLedger, database: Database) -> None:
    async with database.read() as connection:
        assert await ledger.look(connection, _call()) is None
    await ledger.once(_call(), _Work())
    async with database.read() as connection:
        assert await ledger.look(connection, _call()) == "done"
        assert await ledger.look(connection, _call("")) is None
        with pytest.raises(InvalidField):
            await ledger.look(connection, _call(digest=b"different"))


async def test_a_row_that_housekeeping_deletes_meanwhile_is_taken_again(
    ledger: RequestLedger, database: Database
) -> None:
    await ledger.once(_call(), _Work("answer"))
    async with asyncio.TaskGroup() as group, database.transaction() as cleaning:
        await cleaning.connection.execute(text("delete from request_ledger"))
        again = group.create_task(ledger.once(_call(), _Work("again")))
        await eventually(lambda: _someone_waits(database))
    assert again.result() == "again"


class CountRequest:
    """A request like protobuf's."""

    organization_id, request_id = "o", "r1"

    def __init__(self, text: str) -> None:
        self._text = text

    def SerializeToString(self, *, deterministic: bool) -> bytes:
        return StringValue(value=self._text).SerializeToString(deterministic=deterministic)


async def test_a_mutation_answers_with_the_response_of_its_own_method(ledger: RequestLedger) -> None:
    counted: Call[str, Int32Value] = mutation(
        CountRequest("abc"), Int32Value, lambda result: Int32Value(value=len(result))
    )
    assert counted.method == "Count"
    for work in (_Work("four"), _Work("another")):
        assert await ledger.once(counted, work) == Int32Value(value=4)
    with pytest.raises(InvalidField):
        await ledger.once(mutation(CountRequest("abcd"), Int32Value, lambda _: Int32Value()), _Work())
