"""The calls of OperationsService: stats, and listing, redriving and archiving dead letters."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from postflow.ops.v1 import operations_service_pb2 as pb
from postflow.ops.v1.operations_service_pb2_grpc import OperationsServiceStub
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest
from servicekit.ids import Uuid7Source
from servicekit.messaging.applier import EventApplier
from servicekit.messaging.routes import Received, Route
from servicekit.messaging.troubles import Patience
from servicekit.ops import Number, Operations, operations_servicer
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetters
from servicekit.rpc import RpcServer, open_channel
from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually

if TYPE_CHECKING:
    from postflow.ops.v1.operations_service_pb2_grpc import OperationsServiceAsyncStub

MIGRATIONS = "schedule_service.adapters.postgres.migrations"


class Rig:
    """A process that applies numbers, and refuses some of them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.applied: list[int] = []
        self.error: Exception | None = InvalidRequest("TOO_ODD", "not yet")
        self.gate: asyncio.Event | None = None
        self.letters = DeadLetters(database, DatabaseClock(), Uuid7Source())
        self.applier = EventApplier(
            consumer="numbers",
            routes=[Route(message=Duration, apply=self._apply)],
            database=database,
            clock=DatabaseClock(),
            dead_letters=self.letters,
            patience=Patience(),
        )
        self.stub: OperationsServiceAsyncStub

    async def _apply(self, tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        if self.error:
            raise self.error
        if self.gate:
            await self.gate.wait()
        self.applied += [received.message.seconds for received in events if isinstance(received.message, Duration)]

    async def park(self, *numbers: int, organization_id: str = "org") -> list[str]:
        await self.applier.apply([_received(number, organization_id) for number in numbers])
        return [letter.id for letter in await self.list()]

    async def list(self, **filters: object) -> Sequence[pb.DeadLetter]:
        request = pb.ListDeadLettersRequest(**filters)  # type: ignore[arg-type]
        return (await self.stub.ListDeadLetters(request)).dead_letters

    async def somebody_waits_for_a_lock(self) -> bool:
        async with self.database.read() as connection:
            locks = """
                select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
            """
            return bool((await connection.execute(text(locks))).scalar_one())

    async def redrive(self, **chosen: object) -> pb.RedriveDeadLettersResponse:
        return await self.stub.RedriveDeadLetters(pb.RedriveDeadLettersRequest(**chosen))  # type: ignore[arg-type]


def _received(number: int, organization_id: str) -> Received:
    message = Duration(seconds=number)
    kind = message.DESCRIPTOR.full_name
    event = bus_pb2.Event(
        id=f"event-{number}", type=kind, organization_id=organization_id, payload=message.SerializeToString()
    )
    return Received.of(event, message)


async def _numbers() -> Sequence[Number]:
    return [Number(name="numbers.known", value=3.5, unit="s")]


@pytest.fixture
async def rig(database: Database) -> AsyncIterator[Rig]:
    rig = Rig(database)
    operations = Operations(
        service="tiny",
        migrations=MIGRATIONS,
        database=database,
        clock=DatabaseClock(),
        system=SystemClock(),
        dead_letters=rig.letters,
        consumers=[rig.applier],
        numbers=_numbers,
    )
    server = RpcServer(listen="127.0.0.1:0", servicers=[operations_servicer(operations)], ids=Uuid7Source())
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        rig.stub = OperationsServiceStub(channel)
        yield rig
    await server.stop(0)


async def test_dead_letters_are_listed_in_pages_by_consumer_tenant_and_state(rig: Rig) -> None:
    ids = await rig.park(*range(5))
    await rig.park(7, organization_id="other")
    await rig.letters.add(consumer="elsewhere", subject="s", reason="r", payload=b"")
    first = await rig.stub.ListDeadLetters(pb.ListDeadLettersRequest(consumer="numbers", page_size=3))
    assert [letter.id for letter in first.dead_letters] == ids[:3]
    rest = await rig.stub.ListDeadLetters(
        pb.ListDeadLettersRequest(consumer="numbers", page_token=first.next_page_token)
    )
    assert [letter.organization_id for letter in rest.dead_letters] == ["org", "org", "other"]
    assert not rest.next_page_token
    assert len(await rig.list(organization_id="other")) == 1
    assert len(await rig.list(states=[pb.DEAD_LETTER_STATE_OPEN])) == 7
    assert not await rig.list(states=[pb.DEAD_LETTER_STATE_ARCHIVED])
    letter = first.dead_letters[0]
    assert (letter.subject, letter.reason) == ("google.protobuf.Duration", "TOO_ODD while applying")
    assert (letter.state, letter.redrives) == (pb.DEAD_LETTER_STATE_OPEN, 0)


async def test_a_payload_is_shown_only_on_request_and_within_limits(rig: Rig) -> None:
    for size in (100_000, 60_000, 60_000, 60_000):
        await rig.letters.add(consumer="numbers", subject="s", reason="r", payload=b"x" * size)
    assert [(each.payload, each.payload_size) for each in await rig.list()][:2] == [(b"", 100_000), (b"", 60_000)]
    page = await rig.stub.ListDeadLetters(pb.ListDeadLettersRequest(include_payload=True))
    assert [len(each.payload) for each in page.dead_letters] == [65_536, 60_000]
    assert page.next_page_token


async def test_a_letter_that_can_be_applied_is_redriven_once(rig: Rig) -> None:
    ids = await rig.park(1, 2, 3)
    rig.error = None
    answer = await rig.redrive(dead_letter_ids=ids[:2])
    assert [(result.dead_letter_id, result.redriven) for result in answer.results] == [(ids[0], True), (ids[1], True)]
    assert rig.applied == [1, 2]
    assert not (await rig.redrive(dead_letter_ids=ids[:2])).results
    assert rig.applied == [1, 2]
    states = [letter.state for letter in await rig.list()]
    assert states == [pb.DEAD_LETTER_STATE_REDRIVEN, pb.DEAD_LETTER_STATE_REDRIVEN, pb.DEAD_LETTER_STATE_OPEN]


async def test_a_letter_that_is_redriven_twice_at_once_is_applied_once(rig: Rig) -> None:
    (letter_id,) = await rig.park(1)
    rig.error, rig.gate = None, asyncio.Event()
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(rig.redrive(dead_letter_ids=[letter_id])) for _ in range(2)]
        await eventually(rig.somebody_waits_for_a_lock)
        rig.gate.set()
    assert [result.redriven for each in both for result in each.result().results] == [True, True]
    assert rig.applied == [1]
    (letter,) = await rig.list()
    assert letter.redrives == 1


async def test_a_letter_that_fails_again_stays_open_with_the_new_reason(rig: Rig) -> None:
    (letter_id,) = await rig.park(1)
    rig.error = AttributeError("the text of a post")
    (result,) = (await rig.redrive(dead_letter_ids=[letter_id])).results
    assert (result.redriven, result.reason) == (False, "AttributeError while applying")
    (letter,) = await rig.list()
    assert (letter.state, letter.redrives, letter.reason) == (pb.DEAD_LETTER_STATE_OPEN, 1, result.reason)
    assert letter.HasField("redrive_time")
    assert not letter.HasField("end_time")


async def test_a_consumer_is_redriven_page_by_page_past_failures(rig: Rig) -> None:
    await rig.park(*range(5))
    await rig.letters.add(consumer="numbers", subject="s", reason="r", payload=b"\xff no envelope")
    rig.error = None
    answer = await rig.redrive(consumer="numbers", page_size=2)
    results = list(answer.results)
    while answer.next_page_token:
        answer = await rig.redrive(consumer="numbers", page_size=2, page_token=answer.next_page_token)
        results += answer.results
    assert [result.redriven for result in results] == [True] * 5 + [False]
    assert sorted(rig.applied) == list(range(5))
    (left,) = await rig.list(states=[pb.DEAD_LETTER_STATE_OPEN])
    assert left.reason == "MALFORMED_EVENT while applying"


async def test_a_redrive_for_one_tenant_leaves_others_alone(rig: Rig) -> None:
    await rig.park(1)
    ids = await rig.park(2, organization_id="other")
    rig.error = None
    await rig.redrive(dead_letter_ids=ids, organization_id="other")
    assert rig.applied == [2]


async def test_an_archived_letter_can_still_be_redriven(rig: Rig) -> None:
    ids = await rig.park(1, 2)
    request = pb.ArchiveDeadLettersRequest(dead_letter_ids=[ids[0], "unknown"])
    assert (await rig.stub.ArchiveDeadLetters(request)).dead_letter_ids == [ids[0]]
    assert not (await rig.stub.ArchiveDeadLetters(request)).dead_letter_ids
    rig.error = None
    await rig.redrive(consumer="numbers")
    assert rig.applied == [2]
    await rig.redrive(dead_letter_ids=[ids[0]])
    assert rig.applied == [2, 1]


@pytest.mark.parametrize(
    ("request_", "field", "reason"),
    [
        (pb.RedriveDeadLettersRequest(), "consumer", "INVALID_FIELD"),
        (pb.RedriveDeadLettersRequest(dead_letter_ids=["a"], consumer="numbers"), "consumer", "INVALID_FIELD"),
        (pb.RedriveDeadLettersRequest(consumer="nobody"), "consumer", "UNKNOWN_CONSUMER"),
        (pb.RedriveDeadLettersRequest(dead_letter_ids=["x"] * 101), "dead_letter_ids", "INVALID_FIELD"),
    ],
)
async def test_a_redrive_without_a_target_is_refused(
    rig: Rig, request_: pb.RedriveDeadLettersRequest, field: str, reason: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rig.stub.RedriveDeadLetters(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    fault: Fault = fault_from_error(caught.value)
    assert fault.reason == reason
    assert [violation.field for violation in fault.violations] == [field]


@pytest.mark.parametrize(
    "request_",
    [pb.ListDeadLettersRequest(page_size=201), pb.ListDeadLettersRequest(states=[pb.DEAD_LETTER_STATE_UNSPECIFIED])],
)
async def test_an_invalid_list_request_is_refused(rig: Rig, request_: pb.ListDeadLettersRequest) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rig.stub.ListDeadLetters(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_stats_describe_the_process(rig: Rig) -> None:
    await rig.park(1)
    rig.error = AttributeError()
    await rig.applier.apply([_received(2, "org")])
    async with rig.database.statement() as connection:
        await connection.execute(
            text("insert into outbox (event_id, subject, payload, create_time) values ('e', 's', '', now())")
        )
    stats = await rig.stub.GetStats(pb.GetStatsRequest())
    assert (stats.service, stats.schema_revision, stats.needed_schema_revision) == (
        "tiny",
        "0001",
        migrations.newest(MIGRATIONS),
    )
    assert stats.version
    assert stats.HasField("start_time")
    (consumer,) = stats.consumers
    assert (consumer.consumer, consumer.open_dead_letters) == ("numbers", 1)
    assert consumer.state == pb.CONSUMER_STATE_FAILING
    assert list(consumer.failing_types) == ["google.protobuf.Duration"]
    assert stats.outbox.backlog == 1
    assert stats.outbox.HasField("oldest_age")
    assert [(each.name, each.value, each.unit) for each in stats.numbers] == [("numbers.known", 3.5, "s")]
