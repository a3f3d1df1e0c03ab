"""Composition root of a schedule process."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

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
from schedule_service.application.calendars.follow_slots import DeletePastSlots
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
from schedule_service.entrypoints.loops import loops
from schedule_service.entrypoints.rpc import AccountSchedules, ScheduleRules, ScheduleServicer
from schedule_service.entrypoints.timer_rpc import TimerServicer
from schedule_service.settings import Settings
from servicekit.backbone import Backbone
from servicekit.clock import Clock
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.run import Process, run_main

MIGRATIONS = "schedule_service.adapters.postgres.migrations"

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_tzdata = _meter.create_gauge("postflow.tzdata", description="1 for the tzdata release in use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The dependencies that the use cases of a process share."""

    database: Database
    clock: DatabaseClock
    ids: IdSource
    ledger: RequestLedger
    outbox: Outbox


def main() -> int:
    # By default, a thread that computes blocks the event loop for five milliseconds at a time. Measured next to ten
    # large listings: with this setting other calls take a tenth of the time, at the same CPU cost.
    sys.setswitchinterval(0.0005)
    return run_main("schedule", Settings, compose)


async def compose(settings: Settings) -> Process:
    _report_tzdata()
    backbone = Backbone("schedule", settings, migrations=MIGRATIONS)
    database, clock = backbone.database, backbone.clock
    parts = Parts(database=database, clock=clock, ids=backbone.ids, ledger=backbone.ledger, outbox=backbone.outbox)
    engine = _timer_engine(parts, settings)
    consumer = backbone.consumer(CONSUMER, routes())
    return backbone.process(
        servicers=[
            (add_ScheduleServiceServicer_to_server, schedule_servicer(parts)),
            (add_TimerServiceServicer_to_server, timer_servicer(parts, engine.wake)),
            (add_ScheduleAdminServiceServicer_to_server, admin_servicer(parts, backbone.system)),
        ],
        operations=backbone.operations(consumer),
        # Stopped before the outbox relay, which publishes what the engine fires last.
        consumers=[consumer, engine],
        loops=loops(
            delete_past_slots=DeletePastSlots(database=database, clock=clock),
            delete_finished_timers=DeleteFinishedTimers(database=database, clock=clock),
            watch_tzdata=WatchTzdata(database=database),
        ),
        deadlines=DEADLINES,
    )


def schedule_servicer(parts: Parts) -> ScheduleServicer:
    return ScheduleServicer(account_schedules=_account_schedules(parts), schedule_rules=_schedule_rules(parts))


def _account_schedules(parts: Parts) -> AccountSchedules:
    database, clock = parts.database, parts.clock
    return AccountSchedules(
        put=PutAccountSchedule(ledger=parts.ledger, outbox=parts.outbox),
        get=GetAccountSchedule(database),
        list=ListAccountSchedules(database),
        delete=DeleteAccountSchedule(ledger=parts.ledger, outbox=parts.outbox),
        check_send_window=CheckSendWindow(database=database, clock=clock),
        find_slot_times=FindSlotTimes(database=database, clock=clock),
    )


def _timer_engine(parts: Parts, settings: Settings) -> TimerEngine:
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


def _schedule_rules(parts: Parts) -> ScheduleRules:
    database, clock, ledger, outbox = parts.database, parts.clock, parts.ledger, parts.outbox
    return ScheduleRules(
        create=CreateScheduleRule(ids=parts.ids, ledger=ledger, outbox=outbox),
        get=GetScheduleRule(database),
        update=UpdateScheduleRule(ledger=ledger, outbox=outbox),
        delete=DeleteScheduleRule(ledger=ledger, outbox=outbox),
        list=ListScheduleRules(database),
        list_targets=ListRuleTargets(database=database, clock=clock),
    )


def admin_servicer(parts: Parts, process_clock: Clock) -> ScheduleAdminServicer:
    database, clock = parts.database, parts.clock
    return ScheduleAdminServicer(
        list_zone_changes=ListZoneChanges(database=database, clock=clock),
        apply_zone_changes=ApplyZoneChanges(
            database=database, clock=clock, outbox=parts.outbox, process_clock=process_clock
        ),
    )


def _report_tzdata() -> None:
    """Logs and counts the tzdata release: processes with different releases compute different slots for next month."""
    _log.info("time zone data: tzdata %s", tzdata_version())
    _tzdata.set(1, {"version": tzdata_version()})


if __name__ == "__main__":
    sys.exit(main())
