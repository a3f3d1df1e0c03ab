"""Events that cannot be applied: bad ones are parked, and a defect of our code parks nothing."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.faults import Conflict, InvalidField, InvalidRequest, Unavailable
from servicekit.ids import Uuid7Source
from servicekit.messaging.applier import EventApplier
from servicekit.messaging.routes import Received, Route
from servicekit.messaging.troubles import Patience, Troubles
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetters

PATIENCE = Patience(attempts=4, give_up_after=timedelta(minutes=5), neighbours=3, most_suspects=300)

TOO_LONG_FOR_AN_INDEX = """
    insert into inbox select 'c', string_agg(md5(n::text), ''), now()
    from generate_series(1, case when cast(:number as int) = 2 then 1000 else 1 end) as n
"""

Trip = Callable[[int], Exception | None]


class Rig:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1000.0
        self.trip: Trip = lambda _number: None
        self.statement = ""
        self.transactions = 0
        self.dead_letters = DeadLetters(database, DatabaseClock(), Uuid7Source())
        self.applier = EventApplier(
            consumer="test-events",
            routes=[Route(message=Duration, apply=self._apply), Route(message=Timestamp, apply=self._apply)],
            database=database,
            clock=DatabaseClock(),
            dead_letters=self.dead_letters,
            patience=PATIENCE,
            monotonic=lambda: self.now,
        )

    async def _apply(self, tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        self.transactions += 1
        for received in events:
            assert isinstance(received.message, Duration | Timestamp)
            if error := self.trip(received.message.seconds):
                raise error
            if self.statement:
                await tx.connection.execute(text(self.statement), {"number": received.message.seconds})

    async def again(self, *numbers: int, message: type[Duration] | type[Timestamp] = Duration) -> dict[str, float]:
        return await self.applier.apply([_received(message(seconds=number), number) for number in numbers])

    async def until_settled(self, number: int, *, others: int = 0) -> int:
        """Delivers an event whenever it is due, each time with new neighbours; returns the number of attempts."""
        for turn in range(1, 200):
            neighbours = [10_000 + 100 * turn + other for other in range(others)]
            later = await self.again(number, *neighbours)
            if not later:
                return turn
            self.now += max(later.values())
        raise AssertionError("never settled")

    async def parked(self) -> list[tuple[str, str]]:
        letters = await self.dead_letters.list()
        return [(bus_pb2.Envelope.FromString(each.payload).events[0].id, each.reason) for each in letters]

    async def applied(self) -> set[str]:
        async with self.database.read() as connection:
            return set((await connection.execute(text("select event_id from inbox"))).scalars())


def _received(message: Message, number: int) -> Received:
    kind = message.DESCRIPTOR.full_name
    event = bus_pb2.Event(id=f"{kind}-{number}", type=kind, organization_id="org", payload=message.SerializeToString())
    return Received.of(event, message)


def _only(number: int, error: Exception) -> Trip:
    return lambda each: error if each == number else None


@pytest.fixture
def rig(database: Database) -> Rig:
    return Rig(database)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InvalidRequest("MALFORMED_EVENT", "without its id"), "MALFORMED_EVENT while applying"),
        (InvalidField("x", "too long"), "INVALID_FIELD while applying"),
        (Conflict("TOO_OLD", "superseded"), "TOO_OLD while applying"),
        (DecodeError("the text of a post"), "DecodeError while applying"),
        (ExceptionGroup("two", [DecodeError("a"), InvalidRequest("B", "b")]), "DecodeError while applying"),
    ],
)
async def test_an_event_that_is_refused_is_parked_at_once(rig: Rig, error: Exception, reason: str) -> None:
    rig.trip = _only(2, error)
    assert await rig.again(1, 2, 3) == {}
    assert await rig.parked() == [("google.protobuf.Duration-2", reason)]
    assert not rig.applier.is_failing


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        (TOO_LONG_FOR_AN_INDEX, "54000"),
        ("select 1 / (cast(:number as int) - 2)", "22012"),
        ("select cast(:number + 2147483646 as int)", "22003"),
    ],
)
async def test_an_event_with_unstorable_values_is_parked_at_once(rig: Rig, statement: str, state: str) -> None:
    rig.statement = statement
    assert await rig.again(1, 2) == {}
    ((_, reason),) = await rig.parked()
    assert state in reason


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("select no_such_column from inbox", None),
        ("select 1 from no_such_table", None),
        ("select cast(cast(:number as int) as no_such_type)", None),
        ("insert into dead_letter (id) values (cast(:number as text))", None),
        ("", AttributeError("nothing has it")),
        ("", TypeError("expected str, got int")),
        ("", AssertionError()),
    ],
)
async def test_a_defect_that_hits_every_event_of_a_type_parks_nothing(
    rig: Rig, statement: str, error: Exception | None
) -> None:
    rig.statement, rig.trip = statement, lambda _number: error
    numbers = range(500)
    for _ in range(30):
        later = await rig.again(*numbers)
        assert len(later) == 500
        rig.now += max(later.values())
    assert rig.now > 1000 + 10 * 60
    assert await rig.parked() == []
    assert rig.applier.is_failing

    rig.statement, rig.trip = "", lambda _number: None
    rig.now += 60
    assert await rig.again(*numbers) == {}
    assert len(await rig.applied()) == 500
    assert not rig.applier.is_failing


async def test_a_defect_that_hits_everything_costs_few_transactions(rig: Rig) -> None:
    rig.trip = lambda _number: AttributeError()
    await rig.again(*range(500))
    assert rig.transactions < 20
    before = rig.transactions
    await rig.again(*range(500, 1000))
    assert rig.transactions == before, "the type rests"


async def test_a_type_that_fails_delays_no_other_type(rig: Rig) -> None:
    rig.trip = lambda number: AttributeError() if number < 100 else None
    failing = [_received(Duration(seconds=number), number) for number in range(20)]
    others = [_received(Timestamp(seconds=number), number) for number in range(200, 220)]
    later = await rig.applier.apply([each for pair in zip(failing, others, strict=True) for each in pair])
    assert later.keys() == {each.event.id for each in failing}
    assert await rig.applied() == {each.event.id for each in others}


async def test_one_event_that_hits_a_defect_is_parked_in_the_end(rig: Rig) -> None:
    rig.trip = _only(7, AttributeError("the text of a post"))
    began = rig.now
    attempts = await rig.until_settled(7, others=3)
    assert attempts >= PATIENCE.attempts
    assert rig.now - began >= PATIENCE.give_up_after.total_seconds()
    ((event_id, reason),) = await rig.parked()
    assert event_id == "google.protobuf.Duration-7"
    assert re.match(r"AttributeError while applying; \d+ attempts while others were applied", reason)
    assert "post" not in reason
    assert not rig.applier.is_failing
    assert len(await rig.applied()) == 1 + 3 * attempts


async def test_an_event_without_neighbours_that_apply_is_never_parked(rig: Rig) -> None:
    rig.trip = _only(7, AttributeError())
    for _ in range(50):
        rig.now += max((await rig.again(7)).values())
    assert await rig.parked() == []
    await rig.again(*range(100, 103))
    assert await rig.again(7) == {}
    assert len(await rig.parked()) == 1


async def test_a_defect_that_hits_half_of_the_events_parks_none(rig: Rig) -> None:
    rig.trip = lambda number: AttributeError() if number % 2 else None
    kept: set[int] = set()
    for turn in range(40):
        numbers = sorted(kept | set(range(10 * turn, 10 * turn + 10)))
        later = await rig.again(*numbers)
        kept = {number for number in numbers if f"google.protobuf.Duration-{number}" in later}
        rig.now += 30
    assert kept == {number for number in range(400) if number % 2}
    assert await rig.parked() == []


async def test_events_known_to_fail_delay_no_other_of_their_type(rig: Rig) -> None:
    rig.trip = lambda number: AttributeError() if number < 5 else None
    await rig.again(*range(10))
    for turn in range(10, 20):
        rig.now += 30
        assert len(await rig.again(*range(5))) == 5
        assert await rig.again(turn) == {}


async def test_a_defect_that_hits_more_than_is_remembered_parks_none(rig: Rig) -> None:
    rig.trip = lambda number: AttributeError() if number % 2 else None
    for number in range(0, 800, 20):
        await rig.again(*range(number, number + 20))
        rig.now += 1
    for number in range(10_000, 20_000, 500):
        assert await rig.again(*range(number, number + 500, 2)) == {}
        assert len(await rig.again(*range(1, 30, 2), number + 1)) == 16
        rig.now += 60
    assert await rig.parked() == []
    assert rig.applier.is_failing


async def test_very_many_events_known_to_fail_are_retried_less_often() -> None:
    troubles = Troubles(Patience())
    for number in range(5000):
        troubles.failed_alone("type", f"event {number}", 0.0)
    for time in (100.0, 200.0, 300.0, 1000.0, 2000.0):
        troubles.failed_alone("type", "event 0", time)
    assert 120 <= troubles.pause("type", "event 0", 2000.0) <= 150


async def test_a_transient_error_is_raised_and_not_counted(rig: Rig) -> None:
    rig.trip = _only(2, Unavailable("AWAY", "away"))
    with pytest.raises(Unavailable):
        await rig.again(1, 2)
    assert await rig.parked() == []
    assert not rig.applier.is_failing


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("select pg_sleep(case when cast(:number as int) = 2 then 10 else 0 end)", "QueryCanceled"),
        (
            "update inbox set receive_time = receive_time where event_id = 'locked' and cast(:number as int) = 2",
            "LockNotAvailable",
        ),
    ],
)
async def test_an_event_that_takes_too_long_delays_no_other(
    database_url: str, caplog: pytest.LogCaptureFixture, statement: str, error: str
) -> None:
    database = Database(
        database_url,
        application="test",
        statement_timeout=timedelta(milliseconds=400),
        lock_timeout=timedelta(milliseconds=200),
    )
    rig = Rig(database)
    rig.statement = statement
    async with database.statement() as connection:
        await connection.execute(text("insert into inbox values ('elsewhere', 'locked', clock_timestamp())"))
    async with database.transaction() as elsewhere:
        await elsewhere.connection.execute(text("select from inbox for update"))
        assert (await rig.again(1, 2, 3)).keys() == {"google.protobuf.Duration-2"}
    assert rig.applier.is_failing
    assert {"google.protobuf.Duration-1", "google.protobuf.Duration-3"} < await rig.applied()
    assert error in caplog.text
    rig.statement = ""
    rig.now += 60
    assert await rig.again(2) == {}
    await database.dispose()


async def test_an_event_that_cannot_be_parked_stays_in_the_stream(rig: Rig) -> None:
    rig.trip = _only(2, InvalidRequest("BAD", "bad"))
    async with rig.database.statement() as connection:
        await connection.execute(text("alter table dead_letter rename to elsewhere"))
    assert (await rig.again(1, 2, 3)).keys() == {"google.protobuf.Duration-2"}
    assert rig.applier.is_failing
    async with rig.database.statement() as connection:
        await connection.execute(text("alter table elsewhere rename to dead_letter"))
    rig.now += 60
    assert await rig.again(2) == {}
    assert await rig.parked() == [("google.protobuf.Duration-2", "BAD while applying")]


async def test_an_event_that_another_replica_applied_is_forgotten(rig: Rig) -> None:
    rig.trip = _only(7, AttributeError())
    await rig.again(7)
    assert rig.applier.is_failing
    rig.now += 11 * PATIENCE.longest_pause.total_seconds()
    rig.applier.look_again()
    assert not rig.applier.is_failing
