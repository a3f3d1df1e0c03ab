"""Calls that share a transaction: each gets what it would get alone, no matter what happens to the others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from servicekit.faults import AlreadyExists, Fault, InvalidField
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.errors import is_transient, sqlstate
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.session import Statement
from servicekit.pg.together import Together
from testkit.calls import call
from testkit.database_clocks import FrozenDatabaseClock

ADD = Statement("""
    insert into inbox (consumer, event_id, receive_time)
    select 'c', name, :now from unnest(cast(:names as text[])) as name on conflict do nothing returning event_id
""")
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LOCK = text("select pg_advisory_xact_lock(:key)")
REFUSE_AT_COMMIT = """
    create function refuse() returns trigger language plpgsql as $$
        begin if new.event_id = 'bad' then raise check_violation; end if; return null; end $$;
    create constraint trigger refuse after insert on inbox deferrable initially deferred
        for each row execute function refuse();
"""


class _Names:
    """A use case that adds names, each of which can be added once; 'broken' is a defect."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.batches: list[list[str]] = []
        self.before: Callable[[Transaction, Sequence[str]], Awaitable[None]] | None = None
        self.after: Callable[[Transaction, Sequence[str]], Awaitable[None]] | None = None
        self.add = Together(RequestLedger(database, DatabaseClock()), self._work, patience=timedelta(hours=1))

    async def __call__(self, *names: str, organization: str = "o", **call_of: Any) -> list[Any]:
        """Adds names at the same time, one tick after another; returns the answer or the error of each."""
        call_of.setdefault("request_id", "")
        adding = []
        async with asyncio.TaskGroup() as group:
            for name in names:
                adding.append(group.create_task(self.one(name, organization=organization, **call_of)))
                for _ in range(3):  # those that come in one tick would share the first transaction
                    await asyncio.sleep(0)
        return [task.result() for task in adding]

    async def one(self, name: str, *, request_id: str = "", organization: str = "o", digest: bytes = b"same") -> Any:
        request_id = request_id.replace("*", name)
        try:
            return await self.add(call("Add", organization_id=organization, request_id=request_id, digest=digest), name)
        except Exception as error:  # noqa: BLE001 - compared by the test
            return error

    async def _work(self, tx: Transaction, names: Sequence[str], now: datetime) -> Sequence[str | Fault]:
        self.batches.append(list(names))
        if self.before:
            await self.before(tx, names)
        if "broken" in names:
            raise LookupError
        added = {row.event_id for row in await tx.fetch(ADD, {"names": names, "now": now})}
        if self.after:
            await self.after(tx, names)
        return [
            f"added {name}" if name in added else AlreadyExists("EXISTS", "exists", metadata={"name": name})
            for name in names
        ]


@pytest.fixture
def names(database: Database) -> _Names:
    return _Names(database)


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[_Names]:
    """The same use case in another process."""
    database = Database(database_url, application="replica")
    yield _Names(database)
    await database.dispose()


async def _stored(database: Database, column: str, table: str) -> list[str]:
    async with database.read() as connection:
        return sorted((await connection.execute(text(f"select {column} from {table}"))).scalars())  # noqa: S608


async def _added(names: _Names) -> list[str]:
    return await _stored(names.database, "event_id", "inbox")


async def _answered(names: _Names) -> list[str]:
    return await _stored(names.database, "request_id", "request_ledger")


async def test_calls_that_arrive_together_share_a_transaction(names: _Names) -> None:
    assert await names("a", "b", "c", "d", "e", request_id="r-*") == [f"added {name}" for name in "abcde"]
    assert names.batches == [["a"], ["b", "c", "d", "e"]]
    assert await _answered(names) == ["r-a", "r-b", "r-c", "r-d", "r-e"]


async def test_repeated_calls_get_their_first_answers(names: _Names) -> None:
    first = await names("a", "b", "c", "d", request_id="r-*")
    assert await names("a", "b", "c", "d", request_id="r-*") == first
    assert sum(map(len, names.batches)) == 4


async def test_what_is_refused_leaves_no_trace(names: _Names) -> None:
    await names("x")
    answers = await names("1", "a", "x", "b", request_id="r-*")
    assert [answers[1], answers[3]] == ["added a", "added b"]
    assert answers[2].metadata == {"name": "x"}
    assert names.batches[1:] == [["1"], ["a", "x", "b"]]
    assert await _answered(names) == ["r-1", "r-a", "r-b"]
    async with names.database.statement() as connection:
        await connection.execute(text("delete from inbox where event_id = 'x'"))
    assert await names("x", request_id="r-*") == ["added x"]


async def test_a_defect_of_one_fails_only_that_one(names: _Names) -> None:
    answers = await names("1", "a", "broken", "b", request_id="r-*")
    assert [answers[1], answers[3]] == ["added a", "added b"]
    assert isinstance(answers[2], LookupError)
    assert names.batches == [["1"], ["a", "broken", "b"], ["a"], ["broken"], ["b"]]
    assert await _answered(names) == ["r-1", "r-a", "r-b"]


async def test_a_commit_that_is_refused_fails_only_its_cause(names: _Names, database: Database) -> None:
    async with database.transaction() as tx:
        raw = await tx.connection.get_raw_connection()
        await raw.driver_connection.execute(REFUSE_AT_COMMIT)  # type: ignore[union-attr]
    answers = await names("1", "a", "bad", "b")
    assert [answers[1], answers[3]] == ["added a", "added b"]
    assert sqlstate(answers[2]) == "23514"
    assert await _added(names) == ["1", "a", "b"]


def _raise_key_error() -> None:
    raise KeyError


async def test_calls_whose_commit_is_in_doubt_are_not_repeated(names: _Names) -> None:
    """A repeat without a `request_id` would be a second call."""

    async def lose(tx: Transaction, batch: Sequence[str]) -> None:
        if len(batch) > 1:
            tx.after_commit(_raise_key_error)

    names.after = lose
    answers = await names("1", "a", "b")
    assert [type(answer) for answer in answers] == [str, KeyError, KeyError]
    assert await _added(names) == ["1", "a", "b"]
    assert names.batches == [["1"], ["a", "b"]]


async def test_a_lost_connection_is_everybodys_error(names: _Names) -> None:
    async def kill(tx: Transaction, batch: Sequence[str]) -> None:
        if len(batch) > 1:
            own = (await tx.connection.execute(text("select pg_backend_pid()"))).scalar_one()
            async with names.database.statement() as other:
                await other.execute(text("select pg_terminate_backend(:own, 5000)"), {"own": own})

    names.after = kill
    answers = await names("1", "a", "b", request_id="r-*")
    assert answers[0] == "added 1"
    assert all(is_transient(answer) for answer in answers[1:])
    assert names.batches == [["1"], ["a", "b"]]
    assert await names("a", "b") == ["added a", "added b"]


async def test_an_id_that_comes_twice_at_once_is_carried_out_once(names: _Names) -> None:
    answers = await names("1", "a", "a", "b", "a", request_id="r-*")
    assert answers[1:] == ["added a", "added a", "added b", "added a"]
    assert names.batches == [["1"], ["a", "b"]]


async def test_an_id_under_which_another_request_is_in_flight_is_refused(names: _Names) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(names.one("a", request_id="r"))
        second = group.create_task(names.one("b", request_id="r", digest=b"different"))
        third = group.create_task(names.one("c", request_id="r2"))
    assert (first.result(), third.result()) == ("added a", "added c")
    assert isinstance(second.result(), InvalidField)
    assert second.result().reason == "REQUEST_ID_REUSED"
    assert await _added(names) == ["a", "c"]


async def test_two_processes_with_the_same_calls_make_them_once(names: _Names, replica: _Names) -> None:
    """Both find no stored answer. The second to write waits for the first, and then gives its answers."""
    both_are_here = asyncio.Barrier(2)

    async def meet(tx: Transaction, batch: Sequence[str]) -> None:
        if len(batch) == 3 and len(_with(names, batch) + _with(replica, batch)) <= 2:
            await both_are_here.wait()

    names.before = replica.before = meet
    async with asyncio.TaskGroup() as group:
        here = group.create_task(names("here", "a", "b", "c", request_id="r-*"))
        there = group.create_task(replica("there", "a", "b", "c", request_id="r-*"))
    assert here.result()[1:] == there.result()[1:] == ["added a", "added b", "added c"]
    assert await _added(names) == ["a", "b", "c", "here", "there"]


def _with(names: _Names, batch: Sequence[str]) -> list[list[str]]:
    return [each for each in names.batches if each == list(batch)]


async def test_the_work_of_the_second_process_is_undone(names: _Names, replica: _Names) -> None:
    """Nothing in the work itself makes it wait, such as an id that the work draws: only the ledger's row does."""
    both_are_done = asyncio.Barrier(2)
    drawn = [f"drawn {number}" for number in range(5)]

    def twin(names: _Names) -> Together[str, str]:
        async def draw(tx: Transaction, asked: Sequence[str], now: datetime) -> Sequence[str]:
            name = drawn.pop()
            await tx.fetch(ADD, {"names": [name], "now": now})
            if len(drawn) >= 3:
                await both_are_done.wait()
            return [name]

        return Together(RequestLedger(names.database, DatabaseClock()), draw)

    async with asyncio.TaskGroup() as group:
        here = group.create_task(twin(names)(call("Draw", request_id="r"), ""))
        there = group.create_task(twin(replica)(call("Draw", request_id="r"), ""))
    assert here.result() == there.result()
    assert await _added(names) == [here.result()]
    assert len(drawn) == 3, "the second found the answer of the first"


async def test_a_deadlock_is_resolved_and_fails_nobody(names: _Names, replica: _Names) -> None:
    both_hold_one = asyncio.Barrier(2)
    met: list[int] = []

    def locking(first: int, second: int) -> Callable[[Transaction, Sequence[str]], Awaitable[None]]:
        async def lock(tx: Transaction, batch: Sequence[str]) -> None:
            await tx.connection.execute(LOCK, {"key": first})
            if len(met) < 2:
                met.append(first)
                await both_hold_one.wait()
            await tx.connection.execute(LOCK, {"key": second})

        return lock

    names.before, replica.before = locking(1, 2), locking(2, 1)
    async with asyncio.TaskGroup() as group:
        here = group.create_task(names("a", "b", "c"))
        there = group.create_task(replica("d", "e", "f"))
    assert here.result() + there.result() == [f"added {name}" for name in "abcdef"]


async def test_a_caller_that_goes_in_the_middle_harms_nobody(names: _Names) -> None:
    reached, hold = asyncio.Event(), asyncio.Event()

    async def wait(tx: Transaction, batch: Sequence[str]) -> None:
        if len(batch) > 1:
            reached.set()
            await hold.wait()

    names.before = wait
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(names.one(name, request_id="r-*")) for name in ("1", "a", "b")]
        await reached.wait()
        tasks[1].cancel()
        await asyncio.sleep(0)
        hold.set()
    assert tasks[1].cancelled()
    assert tasks[2].result() == "added b"
    assert await names("a", request_id="r-*") == ["added a"], "it was in flight: its answer is stored"
    assert await _added(names) == ["1", "a", "b"]


async def test_a_flood_of_one_organization_lets_others_through(names: _Names) -> None:
    ended: list[str] = []

    async def add(name: str, organization: str) -> None:
        await names.one(name, organization=organization)
        ended.append(organization)

    async with asyncio.TaskGroup() as group:
        for number in range(500):
            group.create_task(add(f"{number}", "flood"))
        group.create_task(add("few", "few"))
    assert ended.index("few") < 110
    assert max(map(len, names.batches)) == 100


async def test_a_flow_that_ended_early_gets_an_answer(names: _Names) -> None:
    """`recall` has committed a row without an answer."""
    ledger = RequestLedger(names.database, DatabaseClock())
    async with names.database.transaction() as tx:
        await ledger.recall(tx, call("Add", organization_id="o", request_id="r-a"), now=NOW)
    assert await names("a", request_id="r-*") == ["added a"]
    assert await names("a", request_id="r-*") == ["added a"]


async def test_the_time_is_that_of_the_clock(database: Database) -> None:
    clock = FrozenDatabaseClock()

    async def tell(tx: Transaction, asked: Sequence[str], now: datetime) -> Sequence[datetime]:
        return [now for _ in asked]

    together = Together(RequestLedger(database, clock), tell)
    for request_id in ("", "r1"):
        assert await together(call("Tell", request_id=request_id), "") == clock.moment
