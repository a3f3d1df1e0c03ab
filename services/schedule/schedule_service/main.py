"""The schedule process: composition root."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from nats.aio.client import Client
from opentelemetry import metrics

from civil.zones import tzdata_version
from postflow.schedule.v1.schedule_admin_service_pb2_grpc import add_ScheduleAdminServiceServicer_to_server
from postflow.schedule.v1.schedule_service_pb2_grpc import add_ScheduleServiceServicer_to_server
from postflow.schedule.v1.timer_service_pb2_grpc import add_TimerServiceServicer_to_server
from schedule_service.application.calendars.check_send_window import CheckSendWindow
from schedule_service.application.calendars.create_schedule_rule import CreateScheduleRule
from schedule_service.application.calendars.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.calendars.delete_schedule_rule import DeleteScheduleRule
from schedule_service.application.calendars.find_slot_times import FindSlotTimes
from schedule_service.application.calendars.follow_slots import ForgetPastSlots
from schedule_service.application.calendars.get_account_schedule import GetAccountSchedule
from schedule_service.application.calendars.get_schedule_rule import GetScheduleRule
from schedule_service.application.calendars.list_account_schedules import ListAccountSchedules
from schedule_service.application.calendars.list_rule_targets import ListRuleTargets
from schedule_service.application.calendars.list_schedule_rules import ListScheduleRules
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.calendars.update_schedule_rule import UpdateScheduleRule
from schedule_service.application.timers.create_timer import CreateTimer
from schedule_service.application.timers.delete_finished_timers import DeleteFinishedTimers
from schedule_service.application.timers.delete_timer import DeleteTimer
from schedule_service.application.timers.fire_timer import FireTimer
from schedule_service.application.timers.get_timer import GetTimer
from schedule_service.application.timers.list_timers import ListTimers
from schedule_service.application.timers.pause_timer import PauseTimer, ResumeTimer
from schedule_service.application.zone_changes.apply_zone_changes import ApplyZoneChanges
from schedule_service.application.zone_changes.list_zone_changes import ListZoneChanges
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata
from schedule_service.engine.timer_engine import TimerEngine, due_timer_jobs
from schedule_service.entrypoints.admin_rpc import DEADLINES, ScheduleAdminServicer
from schedule_service.entrypoints.events import CONSUMER, routes
from schedule_service.entrypoints.loops import finished_timers, forget_past_slots, housekeeping, tzdata_watch
from schedule_service.entrypoints.rpc import AccountSchedules, ScheduleRules, ScheduleServicer
from schedule_service.entrypoints.timer_rpc import TimerServicer
from schedule_service.settings import Settings
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ensure_stream
from servicekit.clock import SystemClock
from servicekit.ids import IdSource, Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Patience
from servicekit.messaging.relay import Relay
from servicekit.ops import Operations, operations_servicer
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer
from servicekit.run import Loop, Process, run_main

SERVICE = "schedule"
MIGRATIONS = "schedule_service.adapters.postgres.migrations"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The dependencies that the use cases of a process share."""

    database: Database
    clock: DatabaseClock
    ids: IdSource
    ledger: RequestLedger
    outbox: Outbox


def main() -> int:
    # A computing thread keeps the interpreter from the event loop for five milliseconds at a time by default.
    # Measured next to ten large listings: with this setting other calls take a tenth of the time, at the same CPU cost.
    sys.setswitchinterval(0.0005)
    return run_main(SERVICE, Settings, compose)


async def compose(settings: Settings) -> Process:
    ids, clock = Uuid7Source(), DatabaseClock()
    database = Database(settings.database_url.reveal(), application=SERVICE, pool_size=settings.database_connections)
    nats = Client()
    events = nats.jetstream()
    relay = Relay(
        database=database,
        clock=clock,
        publisher=PipelinedPublisher(nats),
        stream=StreamView(events, settings.events_stream),
        connections=lambda: nats.stats["reconnects"],
    )
    parts = Parts(
        database=database, clock=clock, ids=ids, ledger=RequestLedger(database, clock), outbox=Outbox(ids, relay.offer)
    )
    engine = timer_engine(parts, settings)
    dead_letters = DeadLetters(database, clock, ids)
    consumer = EventConsumer(
        connection=nats,
        spec=CONSUMER,
        routes=routes(),
        database=database,
        clock=clock,
        dead_letters=dead_letters,
        ensure_stream=lambda: ensure_stream(events, settings.events_stream),
        patience=Patience(give_up_after=settings.park_poison_after),
    )
    operations = Operations(
        service=SERVICE,
        migrations=MIGRATIONS,
        database=database,
        clock=clock,
        system=SystemClock(),
        dead_letters=dead_letters,
        consumers=[consumer.applier],
    )
    server = RpcServer(
        listen=settings.listen,
        servicers=[
            (add_ScheduleServiceServicer_to_server, schedule_servicer(parts)),
            (add_TimerServiceServicer_to_server, timer_servicer(parts, engine.wake)),
            (add_ScheduleAdminServiceServicer_to_server, admin_servicer(parts)),
            operations_servicer(operations),
        ],
        ids=ids,
        deadlines=DEADLINES,
    )
    _report_tzdata()
    return Process(
        name=SERVICE,
        server=server,
        starters={
            "database": lambda: migrations.check(database, MIGRATIONS),
            "nats": lambda: connect(nats, settings.nats_url, name=SERVICE),
            "events": lambda: ensure_stream(events, settings.events_stream),
        },
        # Stopped before the relay, which publishes what the engine fires last.
        consumers=[consumer, engine],
        loops=[relay, *loops(parts)],
        closers={"relay": relay.flush, "nats": lambda: close(nats), "database": database.dispose},
        grace=settings.grace,
    )


def schedule_servicer(parts: Parts) -> ScheduleServicer:
    return ScheduleServicer(account_schedules=account_schedules(parts), schedule_rules=schedule_rules(parts))


def account_schedules(parts: Parts) -> AccountSchedules:
    database, clock = parts.database, parts.clock
    return AccountSchedules(
        put=PutAccountSchedule(ledger=parts.ledger, outbox=parts.outbox),
        get=GetAccountSchedule(database),
        list=ListAccountSchedules(database),
        delete=DeleteAccountSchedule(ledger=parts.ledger, outbox=parts.outbox),
        check_send_window=CheckSendWindow(database=database, clock=clock),
        find_slot_times=FindSlotTimes(database=database, clock=clock),
    )


def timer_engine(parts: Parts, settings: Settings) -> TimerEngine:
    return TimerEngine(
        due_timer_jobs(database=parts.database, clock=parts.clock, outbox=parts.outbox),
        poll=settings.timer_poll,
        batch=settings.timer_batch,
        lock=settings.timer_lock,
    )


def timer_servicer(parts: Parts, wake: Callable[[timedelta], None]) -> TimerServicer:
    database, ids, ledger = parts.database, parts.ids, parts.ledger
    return TimerServicer(
        create=CreateTimer(ids=ids, ledger=ledger, wake=wake),
        get=GetTimer(database=database),
        list_timers=ListTimers(database=database),
        pause=PauseTimer(ledger=ledger),
        resume=ResumeTimer(ledger=ledger, wake=wake),
        fire=FireTimer(ids=ids, ledger=ledger, outbox=parts.outbox),
        delete=DeleteTimer(ledger=ledger),
    )


def schedule_rules(parts: Parts) -> ScheduleRules:
    database, clock, ledger, outbox = parts.database, parts.clock, parts.ledger, parts.outbox
    return ScheduleRules(
        create=CreateScheduleRule(ids=parts.ids, ledger=ledger, outbox=outbox),
        get=GetScheduleRule(database),
        update=UpdateScheduleRule(ledger=ledger, outbox=outbox),
        delete=DeleteScheduleRule(ledger=ledger, outbox=outbox),
        list=ListScheduleRules(database),
        list_targets=ListRuleTargets(database=database, clock=clock),
    )


def admin_servicer(parts: Parts) -> ScheduleAdminServicer:
    database, clock = parts.database, parts.clock
    return ScheduleAdminServicer(
        list_zone_changes=ListZoneChanges(database=database, clock=clock),
        apply_zone_changes=ApplyZoneChanges(
            database=database, clock=clock, outbox=parts.outbox, process_clock=SystemClock()
        ),
    )


def loops(parts: Parts) -> list[Loop]:
    database, clock = parts.database, parts.clock
    return [
        housekeeping(database, clock),
        forget_past_slots(ForgetPastSlots(database=database, clock=clock)),
        finished_timers(DeleteFinishedTimers(database=database, clock=clock)),
        tzdata_watch(WatchTzdata(database=database)),
    ]


def _report_tzdata() -> None:
    """Logs the tzdata release: processes with different releases compute different slots for next month."""
    _log.info("time zones are those of tzdata %s", tzdata_version())
    gauge = metrics.get_meter(__name__).create_gauge("postflow.tzdata", description="The tzdata release in use")
    gauge.set(1, {"version": tzdata_version()})
