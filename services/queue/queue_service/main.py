"""Composition root of a queue process."""

import asyncio
import logging
import sys

from nats.aio.client import Client
from opentelemetry import metrics

from civil.zones import tzdata_version
from postflow.queue.v1.queue_service_pb2_grpc import add_QueueServiceServicer_to_server
from queue_service.adapters.command_stream import CommandStream
from queue_service.adapters.drafts_client import DraftsClient
from queue_service.adapters.publisher_client import PublisherClient
from queue_service.adapters.schedule_client import ScheduleClient
from queue_service.application.account_check import AccountCheck
from queue_service.application.add_to_queue import AddToQueue
from queue_service.application.catch_up import CatchUp
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.hand_over import HandOver
from queue_service.application.list_queue_slots import ListQueueSlots
from queue_service.application.recover_commands import RecoverCommands
from queue_service.application.schedule_at import ScheduleAt
from queue_service.application.settle_slots import SettleSlots
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.watch_overdue import WatchOverdue
from queue_service.entrypoints.events import CONSUMER, routes
from queue_service.entrypoints.loops import loops
from queue_service.entrypoints.rpc import QueueServicer
from queue_service.settings import Settings
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ensure_stream
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Patience
from servicekit.messaging.relay import Relay
from servicekit.ops import Operations, operations_servicer
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, open_channel
from servicekit.run import Process, run_main

MIGRATIONS = "queue_service.adapters.postgres.migrations"

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_tzdata = _meter.create_gauge("postflow.tzdata", description="1 for the tzdata release in use")


def main() -> int:
    return run_main("queue", Settings, compose)


async def compose(settings: Settings) -> Process:
    clock, ids, policy = DatabaseClock(), Uuid7Source(), settings.policy
    database = Database(settings.database_url.reveal(), application="queue", pool_size=settings.database_connections)
    nats = Client()
    jetstream = nats.jetstream()
    relay = Relay(
        database=database,
        clock=clock,
        publisher=PipelinedPublisher(nats),
        stream=StreamView(jetstream, settings.events_stream),
        connections=lambda: nats.stats["reconnects"],
    )
    schedule_channel, drafts_channel = open_channel(settings.schedule_target), open_channel(settings.drafts_target)
    publisher_channel = open_channel(settings.publisher_target)
    new_slots, wake_repeat = asyncio.Event(), asyncio.Event()
    outbox = Outbox(ids, relay.offer)
    ledger = RequestLedger(database, clock)
    find_draft = DraftFinder(
        database=database,
        drafts=DraftsClient(drafts_channel),
        check_accounts=AccountCheck(PublisherClient(publisher_channel)),
    )
    mover = SlotMover(outbox=outbox, policy=policy, release=tzdata_version())
    record = SlotRecorder(outbox=outbox, ids=ids, policy=policy, on_slots=new_slots.set)
    servicer = QueueServicer(
        add_to_queue=AddToQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            find_draft=find_draft,
            schedule=ScheduleClient(schedule_channel, cached_times=settings.slot_times_cached),
            mover=mover,
            record=record,
            policy=policy,
        ),
        schedule_at=ScheduleAt(ledger=ledger, find_draft=find_draft, mover=mover, record=record),
        list_queue_slots=ListQueueSlots(database),
    )
    commands = CommandStream(
        nats,
        PipelinedPublisher(nats),
        limit=settings.outstanding_limit * settings.publish_durables,
        share=settings.organization_share,
        max_attempts=settings.max_attempts,
        stream=settings.publish_stream,
    )
    hand_over = HandOver(database=database, clock=clock, commands=commands, policy=policy, wake=new_slots)
    dead_letters = DeadLetters(database, clock, ids)
    consumer = EventConsumer(
        connection=nats,
        spec=CONSUMER,
        routes=routes(settle_slots=SettleSlots(policy, outbox), follow_drafts=FollowDrafts(outbox)),
        database=database,
        clock=clock,
        dead_letters=dead_letters,
        ensure_stream=lambda: ensure_stream(jetstream, settings.events_stream),
        patience=Patience(give_up_after=settings.park_poison_after),
    )
    watch_overdue = WatchOverdue(database=database, clock=clock)
    operations = Operations(
        service="queue",
        migrations=MIGRATIONS,
        database=database,
        clock=clock,
        system=SystemClock(),
        dead_letters=dead_letters,
        consumers=[consumer.applier],
        numbers=watch_overdue.numbers,
    )
    _report_tzdata()
    return Process(
        name="queue",
        server=RpcServer(
            listen=settings.listen,
            servicers=[(add_QueueServiceServicer_to_server, servicer), operations_servicer(operations)],
            ids=ids,
        ),
        starters={
            "database": lambda: migrations.check(database, MIGRATIONS),
            "nats": lambda: connect(nats, settings.nats_url, name="queue"),
            "events stream": lambda: ensure_stream(jetstream, settings.events_stream),
            "publish stream": lambda: ensure_stream(jetstream, settings.publish_stream),
        },
        consumers=[consumer],
        loops=[
            relay,
            *loops(
                hand_over=hand_over,
                catch_up=CatchUp(database=database, clock=clock, mover=mover),
                recover_commands=RecoverCommands(
                    database=database, clock=clock, commands=commands, policy=policy, wake=wake_repeat
                ),
                watch_overdue=watch_overdue,
                housekeeping=Housekeeping(database, clock, Retention()),
                wake=new_slots,
                wake_repeat=wake_repeat,
            ),
        ],
        closers={
            "outbox relay": relay.flush,
            "nats": lambda: close(nats),
            "channel to schedule": schedule_channel.close,
            "channel to drafts": drafts_channel.close,
            "channel to publisher": publisher_channel.close,
            "database": database.dispose,
        },
        grace=settings.grace,
    )


def _report_tzdata() -> None:
    """Logs and counts the tzdata release: accounts with a newer one wait for a process that has it."""
    _log.info("time zone data: tzdata %s", tzdata_version())
    _tzdata.set(1, {"version": tzdata_version()})


if __name__ == "__main__":
    sys.exit(main())
