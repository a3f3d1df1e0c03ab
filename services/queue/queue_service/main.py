"""Composition root of a queue process."""

import asyncio
import logging
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import grpc
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
from queue_service.domain.policy import Policy
from queue_service.entrypoints.admin_rpc import QueueAdminServicer
from queue_service.entrypoints.events import CONSUMER, routes
from queue_service.entrypoints.loops import loops
from queue_service.entrypoints.rpc import QueueServicer
from queue_service.settings import Settings
from queue_service.wire import watching
from servicekit.backbone import Backbone
from servicekit.bus.feed import Feed
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.ops import Number
from servicekit.rpc import open_channel
from servicekit.run import Process, run_main

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
    backbone, policy = Backbone("queue", settings, migrations=MIGRATIONS), settings.policy
    database, clock = backbone.database, backbone.clock
    channels = {
        "schedule": open_channel(settings.schedule_target),
        "drafts": open_channel(settings.drafts_target),
        "publisher": open_channel(settings.publisher_target),
    }
    new_slots, wake_repeat = asyncio.Event(), asyncio.Event()
    parts = _parts(settings, backbone, channels, new_slots.set)
    servicer = _servicer(settings, backbone, channels, parts)
    commands = _command_stream(settings, backbone)
    requested_times = RequestedTimes(
        mover=parts.mover, record=parts.record, arranger=parts.arranger, outbox=backbone.outbox
    )
    consumer = backbone.consumer(
        CONSUMER,
        routes(
            settle_slots=parts.settle_slots,
            follow_drafts=FollowDrafts(outbox=backbone.outbox, requested_times=requested_times),
        ),
    )
    watch_overdue = WatchOverdue(database=database, clock=clock)
    count_slots = CountSlots(database=database, clock=clock, commands=commands, policy=policy)

    async def numbers() -> list[Number]:
        return [*await watch_overdue.numbers(), *await count_slots.numbers()]

    return backbone.process(
        servicers=[
            (add_QueueServiceServicer_to_server, servicer),
            (add_QueueAdminServiceServicer_to_server, _admin_servicer(backbone, new_slots, wake_repeat)),
        ],
        operations=backbone.operations(consumer, numbers=numbers),
        consumers=[consumer, parts.watched_feed],
        loops=loops(
            hand_over=_hand_over(backbone, commands, policy, new_slots),
            recover_commands=RecoverCommands(
                database=database, clock=clock, commands=commands, policy=policy, wake=wake_repeat
            ),
            repair_connections=RepairConnections(database=database, clock=clock, accounts=parts.publisher),
            reslot_late=_reslot_late(backbone, parts, policy),
            catch_up=CatchUp(database=database, clock=clock, mover=parts.mover),
            complete_holds=CompleteHolds(database=database, keeper=parts.keeper),
            complete_take_backs=CompleteTakeBacks(database=database, clock=clock, take_back=parts.take_back),
            watch_overdue=watch_overdue,
            count_slots=count_slots,
            watched_queues=parts.watched_queues,
            wake=new_slots,
            wake_repeat=wake_repeat,
        ),
        starters={"publish stream": backbone.ensure_stream(settings.publish_stream)},
        closers={f"channel to {service}": channel.close for service, channel in channels.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Holds what calls, loops and consumers share."""

    accounts: AccountPresence
    arranger: Arranger
    check_accounts: AccountCheck
    keeper: HoldKeeper
    mover: SlotMover
    on_slots: Callable[[], None]
    publisher: PublisherClient
    read_times: SlotTimeReader
    record: SlotRecorder
    schedule: ScheduleClient
    settle_slots: SettleSlots
    take_back: TakeBack
    watched_feed: Feed
    watched_queues: WatchedQueues


def _parts(
    settings: Settings, backbone: Backbone, channels: dict[str, grpc.aio.Channel], on_slots: Callable[[], None]
) -> _Parts:
    database, clock, outbox, policy = backbone.database, backbone.clock, backbone.outbox, settings.policy
    publisher = PublisherClient(channels["publisher"])
    schedule = ScheduleClient(channels["schedule"], cached_times=settings.slot_times_cached)
    mover = SlotMover(outbox=outbox, policy=policy, release=tzdata_version())
    settle_slots = SettleSlots(policy, outbox)
    take_back = TakeBack(publisher=publisher, settle=settle_slots)
    check_accounts = AccountCheck(publisher)
    return _Parts(
        accounts=AccountPresence(database, check_accounts),
        arranger=Arranger(outbox=outbox, mover=mover, policy=policy, on_slots=on_slots),
        check_accounts=check_accounts,
        keeper=HoldKeeper(database=database, clock=clock, publisher=publisher, take_back=take_back),
        mover=mover,
        on_slots=on_slots,
        publisher=publisher,
        read_times=SlotTimeReader(database=database, clock=clock, schedule=schedule, policy=policy),
        record=SlotRecorder(outbox=outbox, ids=backbone.ids, policy=policy, on_slots=on_slots),
        schedule=schedule,
        settle_slots=settle_slots,
        take_back=take_back,
        watched_feed=_watched_feed(settings, backbone),
        watched_queues=WatchedQueues(database, most_per_organization=max(settings.watchers // 2, 1)),
    )


def _watched_feed(settings: Settings, backbone: Backbone) -> Feed:
    return Feed(
        backbone.nats,
        stream=settings.events_stream.name,
        subjects=watching.SUBJECTS,
        decode=watching.hints,
        most=settings.watchers,
    )


def _servicer(
    settings: Settings, backbone: Backbone, channels: dict[str, grpc.aio.Channel], parts: _Parts
) -> QueueServicer:
    database, clock, ledger, policy = backbone.database, backbone.clock, backbone.ledger, settings.policy
    check_accounts, read_times = parts.check_accounts, parts.read_times
    drafts = DraftsClient(channels["drafts"])
    find_draft = DraftFinder(database=database, drafts=drafts, check_accounts=check_accounts)
    lock = AccountLock(parts.mover)
    book = SlotBooker(lock=lock, record=parts.record, policy=policy, release=parts.mover.release)
    return QueueServicer(
        add_to_queue=AddToQueue(
            ledger=ledger,
            find_draft=find_draft,
            read_times=read_times,
            book=book,
            book_in_front=FrontBooker(lock=lock, arranger=parts.arranger, record=parts.record, policy=policy),
        ),
        batch_add_to_queue=BatchAddToQueue(ledger=ledger, find_draft=find_draft, read_times=read_times, book=book),
        schedule_at=ScheduleAt(ledger=ledger, find_draft=find_draft, book=book),
        explain_slot=ExplainSlot(
            database=database,
            clock=clock,
            drafts=drafts,
            check_accounts=check_accounts,
            earlier_times=EarlierTimes(parts.schedule),
            policy=policy,
        ),
        get_queue=GetQueue(
            database=database,
            clock=clock,
            check_accounts=check_accounts,
            next_free_time=NextFreeTime(database=database, clock=clock, read_times=read_times, policy=policy),
        ),
        list_draft_slots=ListDraftSlots(database),
        list_queue_slots=ListQueueSlots(database, clock),
        skip_next_slot=SkipNextSlot(ledger=ledger, accounts=parts.accounts),
        **_rearranging(backbone, policy, parts),
        **_holding(backbone, policy, parts),
        watch_queue=WatchQueue(
            database=database,
            clock=clock,
            feed=parts.watched_feed,
            queues=parts.watched_queues,
            hearing=SharedHearing(EventStream(backbone.nats, CONSUMER)),
            accounts=parts.accounts,
            lead=policy.lead,
        ),
        plan_queue=_plan_queue(backbone, parts, policy),
    )


def _plan_queue(backbone: Backbone, parts: _Parts, policy: Policy) -> PlanQueue:
    return PlanQueue(
        database=backbone.database,
        clock=backbone.clock,
        policy=policy,
        accounts=parts.accounts,
        check_accounts=parts.check_accounts,
        read_times=parts.read_times,
        timetables=parts.schedule,
    )


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


def _rearranging(backbone: Backbone, policy: Policy, parts: _Parts) -> _Rearranging:
    database, clock, ledger = backbone.database, backbone.clock, backbone.ledger
    return _Rearranging(
        move_slot=MoveSlot(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=policy,
            arranger=parts.arranger,
            take_back=parts.take_back,
            times=TimesOnDemand(parts.read_times),
        ),
        remove_from_queue=RemoveFromQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=policy,
            arranger=parts.arranger,
            take_back=parts.take_back,
        ),
        clear_queue=ClearQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            accounts=parts.accounts,
            arranger=parts.arranger,
            take_back=parts.take_back,
        ),
        reorder_queue=ReorderQueue(ledger=ledger, arranger=parts.arranger),
        shuffle_queue=ShuffleQueue(
            ledger=ledger,
            arranger=parts.arranger,
            accounts=parts.accounts,
            seeds=lambda: 1 + secrets.randbelow(_SEEDS),
        ),
    )


def _holding(backbone: Backbone, policy: Policy, parts: _Parts) -> _Holding:
    database, clock, ledger = backbone.database, backbone.clock, backbone.ledger
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
            times=TimesOnDemand(parts.read_times),
            on_slots=parts.on_slots,
        ),
        update_queue=UpdateQueue(ledger=ledger, policy=policy, accounts=parts.accounts),
    )


def _hand_over(backbone: Backbone, commands: CommandStream, policy: Policy, wake: asyncio.Event) -> HandOver:
    answers = EventStream(backbone.nats, CONSUMER)
    return HandOver(
        database=backbone.database,
        clock=backbone.clock,
        commands=commands,
        outstanding=Outstanding(database=backbone.database, commands=commands, answers=answers),
        policy=policy,
        wake=wake,
    )


def _reslot_late(backbone: Backbone, parts: _Parts, policy: Policy) -> ReslotLate:
    return ReslotLate(
        database=backbone.database,
        clock=backbone.clock,
        policy=policy,
        arranger=parts.arranger,
        times=TimesOnDemand(parts.read_times),
    )


def _admin_servicer(backbone: Backbone, *wakes: asyncio.Event) -> QueueAdminServicer:
    def wake() -> None:
        for each in wakes:
            each.set()

    return QueueAdminServicer(redispatch_slots=RedispatchSlots(ledger=backbone.ledger, on_due=wake))


def _command_stream(settings: Settings, backbone: Backbone) -> CommandStream:
    return CommandStream(
        backbone.nats,
        PipelinedPublisher(backbone.nats),
        limit=settings.outstanding_limit * settings.publish_durables,
        share=settings.organization_share,
        max_attempts=settings.max_attempts,
        stream=settings.publish_stream,
    )


def _report_tzdata() -> None:
    """Logs the tzdata release: accounts announced with a newer release wait for a process that has it."""
    _log.info("time zone data: tzdata %s", tzdata_version())
    _tzdata.set(1, {"version": tzdata_version()})


if __name__ == "__main__":
    sys.exit(main())
