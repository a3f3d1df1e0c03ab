"""Schedule over the wire: a real server, a real stub, a real database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub, add_ScheduleServiceServicer_to_server
from schedule_service.main import Parts, schedule_servicer
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger_by_hand import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, open_channel


@pytest.fixture
async def database(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Database]:
    database = Database(await service_database("schedule"), application="test", pool_size=4)
    yield database
    await database.dispose()


@pytest.fixture
def announced() -> list[bus_pb2.Event]:
    """What was put into the outbox, in order."""
    return []


@pytest.fixture
def parts(database: Database, announced: list[bus_pb2.Event]) -> Parts:
    ids = Uuid7Source()
    outbox = Outbox(
        ids, lambda rows: announced.extend(e for row in rows for e in bus_pb2.Envelope.FromString(row.payload).events)
    )
    return Parts(database=database, clock=DatabaseClock(), ids=ids, ledger=RequestLedger(), outbox=outbox)


@pytest.fixture
async def stub(parts: Parts) -> AsyncIterator[Any]:
    servicers = [(add_ScheduleServiceServicer_to_server, schedule_servicer(parts))]
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=parts.ids)
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        yield ScheduleServiceStub(channel)
    await server.stop(0)
