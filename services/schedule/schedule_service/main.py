"""The schedule process, wired."""

import logging

from nats.aio.client import Client
from opentelemetry import metrics

from civil.zones import tzdata_version
from postflow.schedule.v1 import schedule_service_pb2_grpc
from schedule_service.application.find_slot_times import FindSlotTimes
from schedule_service.application.put_account_schedule import PutAccountSchedule
from schedule_service.entrypoints.loops import housekeeping
from schedule_service.entrypoints.rpc import ScheduleServicer
from schedule_service.settings import Settings
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ensure_stream
from servicekit.ids import Uuid7Source
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.pg.relay import Relay
from servicekit.rpc import RpcServer
from servicekit.run import Process, run_main
from topology import EVENTS

SERVICE = "schedule"
MIGRATIONS = "schedule_service.adapters.postgres.migrations"

_log = logging.getLogger(__name__)


def main() -> int:
    return run_main(SERVICE, Settings, compose)


async def compose(settings: Settings) -> Process:
    ids, clock, ledger = Uuid7Source(), DatabaseClock(), RequestLedger()
    database = Database(settings.database_url.reveal(), application=SERVICE, pool_size=settings.database_connections)
    nats = Client()
    events = nats.jetstream()
    relay = Relay(
        database=database,
        clock=clock,
        publisher=PipelinedPublisher(nats),
        stream=StreamView(events, EVENTS),
        connections=lambda: nats.stats["reconnects"],
    )
    outbox = Outbox(ids, relay.offer)
    servicer = ScheduleServicer(
        put_account_schedule=PutAccountSchedule(database=database, clock=clock, ledger=ledger, outbox=outbox),
        find_slot_times=FindSlotTimes(database=database, clock=clock),
    )
    server = RpcServer(
        listen=settings.listen,
        servicers=[(schedule_service_pb2_grpc.add_ScheduleServiceServicer_to_server, servicer)],
        ids=ids,
    )
    _tell_tzdata()
    return Process(
        name=SERVICE,
        server=server,
        starters={
            "database": lambda: migrations.check(database, MIGRATIONS),
            "nats": lambda: connect(nats, settings.nats_url, name=SERVICE),
            "events": lambda: ensure_stream(events, EVENTS),
        },
        loops=[relay, housekeeping(database, clock)],
        closers={"relay": relay.flush, "nats": lambda: close(nats), "database": database.dispose},
        grace=settings.grace,
    )


def _tell_tzdata() -> None:
    """Processes that disagree about it disagree about next month's slots."""
    _log.info("time zones are those of tzdata %s", tzdata_version())
    gauge = metrics.get_meter(SERVICE).create_gauge("postflow.tzdata", description="The tzdata release in use")
    gauge.set(1, {"version": tzdata_version()})
