"""Composition root of a queue process."""

import asyncio
import logging
import secrets
import sys
from functools import partial
from typing import TypedDict

from opentelemetry import metrics

from civil.zones import tzdata_version
from postflow.queue.v1.queue_admin_service_pb2_grpc import add_QueueAdminServiceServicer_to_server
from postflow.queue.v1.queue_service_pb2_grpc import add_QueueServiceServicer_to_server
from queue_service.adapters.command_stream import CommandStream
from queue_service.adapters.drafts_client import DraftsClient
from queue_service.adapters.event_stream import EventStream
from queue_service.adapters.publisher_client import PublisherClient
from queue_service.adapters.schedule_client import ScheduleClient
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_lock import AccountLock
from queue_service.application.account_presence import AccountPresence
from queue_service.application.add_to_queue import AddToQueue
from queue_service.application.arranger import Arranger
from queue_service.application.batch_add_to_queue import BatchAddToQueue
from queue_service.application.book_requested_times import RequestedTimes
from queue_service.application.catch_up import CatchUp
from queue_service.application.clear_queue import ClearQueue
from queue_service.application.complete_holds import CompleteHolds
from queue_service.application.complete_take_backs import CompleteTakeBacks
from queue_service.application.count_slots import CountSlots
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.earlier_times import EarlierTimes
from queue_service.application.explain_slot import ExplainSlot
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.front_booker import FrontBooker
from queue_service.application.get_queue import GetQueue
from queue_service.application.hand_over import HandOver
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.application.list_draft_slots import ListDraftSlots
from queue_service.application.list_queue_slots import ListQueueSlots
from queue_service.application.move_slot import MoveSlot
from queue_service.application.next_free_time import NextFreeTime
from queue_service.application.outstanding import Outstanding
from queue_service.application.pause_queue import PauseQueue
from queue_service.application.plan_queue import PlanQueue
from queue_service.application.recover_commands import RecoverCommands
from queue_service.application.redispatch_slots import RedispatchSlots
from queue_service.application.remove_from_queue import RemoveFromQueue
from queue_service.application.reorder_queue import ReorderQueue
from queue_service.application.repair_connections import RepairConnections
from queue_service.application.repeat_commands import RepeatCommands
from queue_service.application.reslot_late import ReslotLate
from queue_service.application.resume_queue import ResumeQueue
from queue_service.application.schedule_at import ScheduleAt
from queue_service.application.settle_slots import SettleSlots
from queue_service.application.shared_hearing import SharedHearing
from queue_service.application.shuffle_queue import ShuffleQueue
from queue_service.application.skip_next_slot import SkipNextSlot
from queue_service.application.slot_booker import SlotBooker
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.slot_time_reader import SlotTimeReader
from queue_service.application.take_back import TakeBack
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.application.update_queue import UpdateQueue
from queue_service.application.watch_overdue import WatchOverdue
from queue_service.application.watch_queue import WatchQueue
from queue_service.application.watched_queues import WatchedQueues
from queue_service.entrypoints.admin_rpc import QueueAdminServicer
from queue_service.entrypoints.events import CONSUMER, restore_routes, routes
from queue_service.entrypoints.loops import loops
from queue_service.entrypoints.rpc import SIZES, QueueServicer
from queue_service.settings import Settings
from queue_service.wire import watching
from servicekit.backbone import Backbone
from servicekit.bus.feed import Feed
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.ops import Number
from servicekit.rpc import open_channel
from servicekit.run import Loop, Process, run_main

MIGRATIONS = "queue_service.adapters.postgres.migrations"

_SEEDS = 2**53 - 1
"""Seeds are numbers that JSON carries exactly."""

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_tzdata = _meter.create_gauge("postflow.tzdata", description="The tzdata release in use")


def main() -> int:
    return run_main("queue", Settings, compose)


async def compose(settings: Settings) -> Process:
    _report_tzdata()
    parts = _Parts(settings)
    backbone, database, clock = parts.backbone, parts.database, parts.clock
    followed = routes(settle_slots=parts.settle_slots, follow_drafts=_follow_drafts(parts))
    consumer = backbone.consumer(CONSUMER, [*followed, *restore_routes(RepeatCommands(partial(_wake, parts)))])
    watch_overdue = WatchOverdue(database=database, clock=clock)
    count_slots = CountSlots(database=database, clock=clock, commands=parts.commands, policy=parts.policy)

    async def numbers() -> list[Number]:
        return [*await watch_overdue.numbers(), *await count_slots.numbers()]

    return backbone.process(
        servicers=[
            (add_QueueServiceServicer_to_server, _servicer(parts)),
            (add_QueueAdminServiceServicer_to_server, _admin_servicer(parts)),
        ],
        operations=backbone.operations(consumer, numbers=numbers),
        consumers=[consumer, parts.watched_feed],
        loops=_loops(parts, watch_overdue, count_slots),
        sizes=SIZES,
        starters={"publish stream": backbone.ensure_stream(settings.publish_stream)},
        closers={f"channel to {service}": channel.close for service, channel in parts.channels.items()},
    )


class _Parts:
    """The parts that calls, loops and consumers share."""

    def __init__(self, settings: Settings) -> None:
        self.backbone = backbone = Backbone("queue", settings, migrations=MIGRATIONS)
        self.policy = policy = settings.policy
        self.database, self.clock, self.ledger = backbone.database, backbone.clock, backbone.ledger
        self.channels = {
            "schedule": open_channel(settings.schedule_target),
            "drafts": open_channel(settings.drafts_target),
            "publisher": open_channel(settings.publisher_target),
        }
        self.drafts = DraftsClient(self.channels["drafts"])
        self.publisher = PublisherClient(self.channels["publisher"])
        self.schedule = ScheduleClient(self.channels["schedule"], cached_times=settings.slot_times_cached)
        self.commands = _command_stream(settings, backbone)
        self.new_slots, self.wake_repeat = asyncio.Event(), asyncio.Event()

        outbox, on_slots = backbone.outbox, self.new_slots.set
        self.mover = SlotMover(outbox=outbox, policy=policy, release=tzdata_version())
        self.record = SlotRecorder(outbox=outbox, ids=backbone.ids, policy=policy, on_slots=on_slots)
        self.arranger = Arranger(outbox=outbox, mover=self.mover, policy=policy, on_slots=on_slots)
        self.settle_slots = SettleSlots(policy, outbox)
        self.take_back = TakeBack(publisher=self.publisher, settle=self.settle_slots)
        self.keeper = HoldKeeper(
            database=self.database, clock=self.clock, publisher=self.publisher, take_back=self.take_back
        )
        self.check_accounts = AccountCheck(self.publisher)
        self.accounts = AccountPresence(self.database, self.check_accounts)
        self.read_times = SlotTimeReader(
            database=self.database, clock=self.clock, schedule=self.schedule, policy=policy
        )
        self.times_on_demand = TimesOnDemand(self.read_times)
        self.watched_feed = _watched_feed(settings, backbone)
        self.watched_queues = WatchedQueues(self.database, most_per_organization=max(settings.watchers // 2, 1))


def _command_stream(settings: Settings, backbone: Backbone) -> CommandStream:
    return CommandStream(
        backbone.nats,
        PipelinedPublisher(backbone.nats),
        limit=settings.outstanding_limit * settings.publish_durables,
        share=settings.organization_share,
        max_attempts=settings.max_attempts,
        stream=settings.publish_stream,
    )


def _watched_feed(settings: Settings, backbone: Backbone) -> Feed:
    return Feed(
        backbone.nats,
        stream=settings.events_stream.name,
        subjects=watching.SUBJECTS,
        decode=watching.hints,
        most=settings.watchers,
    )


def _follow_drafts(parts: _Parts) -> FollowDrafts:
    outbox = parts.backbone.outbox
    requested_times = RequestedTimes(mover=parts.mover, record=parts.record, arranger=parts.arranger, outbox=outbox)
    return FollowDrafts(outbox=outbox, requested_times=requested_times)


def _loops(parts: _Parts, watch_overdue: WatchOverdue, count_slots: CountSlots) -> list[Loop]:
    database, clock, policy = parts.database, parts.clock, parts.policy
    return loops(
        hand_over=_hand_over(parts),
        recover_commands=RecoverCommands(
            database=database, clock=clock, commands=parts.commands, policy=policy, wake=parts.wake_repeat
        ),
        repair_connections=RepairConnections(database=database, clock=clock, accounts=parts.publisher),
        reslot_late=ReslotLate(
            database=database, clock=clock, policy=policy, arranger=parts.arranger, times=parts.times_on_demand
        ),
        catch_up=CatchUp(database=database, clock=clock, mover=parts.mover),
        complete_holds=CompleteHolds(database=database, keeper=parts.keeper),
        complete_take_backs=CompleteTakeBacks(database=database, clock=clock, take_back=parts.take_back),
        watch_overdue=watch_overdue,
        count_slots=count_slots,
        watched_queues=parts.watched_queues,
        wake=parts.new_slots,
        wake_repeat=parts.wake_repeat,
    )


def _hand_over(parts: _Parts) -> HandOver:
    answers = EventStream(parts.backbone.nats, CONSUMER)
    return HandOver(
        database=parts.database,
        clock=parts.clock,
        commands=parts.commands,
        outstanding=Outstanding(database=parts.database, commands=parts.commands, answers=answers),
        policy=parts.policy,
        wake=parts.new_slots,
    )


def _servicer(parts: _Parts) -> QueueServicer:
    return QueueServicer(**_adding(parts), **_rearranging(parts), **_holding(parts), **_reading(parts))


class _Adding(TypedDict):
    add_to_queue: AddToQueue
    batch_add_to_queue: BatchAddToQueue
    schedule_at: ScheduleAt
    skip_next_slot: SkipNextSlot


class _Rearranging(TypedDict):
    move_slot: MoveSlot
    remove_from_queue: RemoveFromQueue
    clear_queue: ClearQueue
    reorder_queue: ReorderQueue
    shuffle_queue: ShuffleQueue


class _Holding(TypedDict):
    pause_queue: PauseQueue
    resume_queue: ResumeQueue
    update_queue: UpdateQueue


class _Reading(TypedDict):
    get_queue: GetQueue
    list_draft_slots: ListDraftSlots
    list_queue_slots: ListQueueSlots
    explain_slot: ExplainSlot
    plan_queue: PlanQueue
    watch_queue: WatchQueue


def _adding(parts: _Parts) -> _Adding:
    ledger, policy, read_times = parts.ledger, parts.policy, parts.read_times
    find_draft = DraftFinder(database=parts.database, drafts=parts.drafts, check_accounts=parts.check_accounts)
    lock = AccountLock(parts.mover)
    book = SlotBooker(lock=lock, record=parts.record, policy=policy, release=parts.mover.release)
    return _Adding(
        add_to_queue=AddToQueue(
            ledger=ledger,
            find_draft=find_draft,
            read_times=read_times,
            book=book,
            book_in_front=FrontBooker(lock=lock, arranger=parts.arranger, record=parts.record, policy=policy),
        ),
        batch_add_to_queue=BatchAddToQueue(ledger=ledger, find_draft=find_draft, read_times=read_times, book=book),
        schedule_at=ScheduleAt(ledger=ledger, find_draft=find_draft, book=book),
        skip_next_slot=SkipNextSlot(ledger=ledger, accounts=parts.accounts),
    )


def _rearranging(parts: _Parts) -> _Rearranging:
    database, clock, ledger, arranger = parts.database, parts.clock, parts.ledger, parts.arranger
    return _Rearranging(
        move_slot=MoveSlot(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=parts.policy,
            arranger=arranger,
            take_back=parts.take_back,
            times=parts.times_on_demand,
        ),
        remove_from_queue=RemoveFromQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=parts.policy,
            arranger=arranger,
            take_back=parts.take_back,
        ),
        clear_queue=ClearQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            accounts=parts.accounts,
            arranger=arranger,
            take_back=parts.take_back,
        ),
        reorder_queue=ReorderQueue(ledger=ledger, arranger=arranger),
        shuffle_queue=ShuffleQueue(
            ledger=ledger,
            arranger=arranger,
            accounts=parts.accounts,
            seeds=lambda: 1 + secrets.randbelow(_SEEDS),
        ),
    )


def _holding(parts: _Parts) -> _Holding:
    database, clock, ledger, policy = parts.database, parts.clock, parts.ledger, parts.policy
    return _Holding(
        pause_queue=PauseQueue(
            database=database, clock=clock, ledger=ledger, accounts=parts.accounts, keeper=parts.keeper
        ),
        resume_queue=ResumeQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=policy,
            accounts=parts.accounts,
            arranger=parts.arranger,
            keeper=parts.keeper,
            times=parts.times_on_demand,
            on_slots=parts.new_slots.set,
        ),
        update_queue=UpdateQueue(ledger=ledger, policy=policy, accounts=parts.accounts),
    )


def _reading(parts: _Parts) -> _Reading:
    database, clock, policy, check_accounts = parts.database, parts.clock, parts.policy, parts.check_accounts
    return _Reading(
        get_queue=GetQueue(
            database=database,
            clock=clock,
            check_accounts=check_accounts,
            next_free_time=NextFreeTime(database=database, clock=clock, read_times=parts.read_times, policy=policy),
        ),
        list_draft_slots=ListDraftSlots(database),
        list_queue_slots=ListQueueSlots(database, clock),
        explain_slot=ExplainSlot(
            database=database,
            clock=clock,
            drafts=parts.drafts,
            check_accounts=check_accounts,
            earlier_times=EarlierTimes(parts.schedule),
            policy=policy,
        ),
        plan_queue=PlanQueue(
            database=database,
            clock=clock,
            policy=policy,
            accounts=parts.accounts,
            check_accounts=check_accounts,
            read_times=parts.read_times,
            timetables=parts.schedule,
        ),
        watch_queue=WatchQueue(
            database=database,
            clock=clock,
            feed=parts.watched_feed,
            queues=parts.watched_queues,
            hearing=SharedHearing(EventStream(parts.backbone.nats, CONSUMER)),
            accounts=parts.accounts,
            lead=policy.lead,
        ),
    )


def _admin_servicer(parts: _Parts) -> QueueAdminServicer:
    return QueueAdminServicer(redispatch_slots=RedispatchSlots(ledger=parts.ledger, on_due=partial(_wake, parts)))


def _wake(parts: _Parts) -> None:
    """Has the loops of dispatch look at once."""
    parts.new_slots.set()
    parts.wake_repeat.set()


def _report_tzdata() -> None:
    """Logs the tzdata release: accounts announced with a newer release wait for a process that has it."""
    _log.info("time zone data: tzdata %s", tzdata_version())
    _tzdata.set(1, {"version": tzdata_version()})


if __name__ == "__main__":
    sys.exit(main())
