"""Queue's use cases on a real database, among fakes of Schedule, Drafts, Publisher and the stream."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import tzdata_version
from postflow.bus.v1 import bus_pb2
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotRefused, SlotScheduled
from postflow.queue.v1.queue_pb2 import Queue as ShownQueue
from postflow.queue.v1.queue_service_pb2 import (
    QUEUE_PLACE_END,
    AddToQueueRequest,
    AddToQueueResponse,
    BatchAddToQueueRequest,
    BatchAddToQueueResponse,
    QueueItem,
    QueueItemResult,
    QueuePlace,
    ScheduleAtRequest,
    ScheduleAtResponse,
    SkipNextSlotRequest,
    SkipNextSlotResponse,
)
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_lock import AccountLock
from queue_service.application.account_presence import AccountPresence
from queue_service.application.add_to_queue import AddToQueue, QueueOrder
from queue_service.application.arranger import Arranger
from queue_service.application.batch_add_to_queue import Batch, BatchAddToQueue
from queue_service.application.book_requested_times import RequestedTimes
from queue_service.application.catch_up import CatchUp
from queue_service.application.complete_take_backs import CompleteTakeBacks
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.follow_schedules import follow_schedules
from queue_service.application.front_booker import FrontBooker
from queue_service.application.hand_over import HandOver
from queue_service.application.list_queue_slots import ListQueueSlots
from queue_service.application.outstanding import Outstanding
from queue_service.application.schedule_at import ExactOrder, ScheduleAt
from queue_service.application.settle_slots import SettleSlots
from queue_service.application.skip_next_slot import Skip, SkipNextSlot
from queue_service.application.slot_booker import SlotBooker
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.slot_time_reader import SlotTimeReader
from queue_service.application.take_back import TakeBack
from queue_service.domain.account import AnnouncedSchedule
from queue_service.domain.command import Command
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from queue_service.domain.settlement import JobReport
from queue_service.wire import batches
from queue_service.wire.queues import skip_next_slot_response
from queue_service.wire.slots import add_to_queue_response, is_in_front, schedule_at_response
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.ledger import Call, RequestLedger, mutation
from servicekit.pg.outbox import Outbox, OutboxRow
from servicekit.timestamps import timestamp
from testkit.database_clocks import FrozenDatabaseClock
from testkit.eventually import eventually
from testkit.plans import listen
from tests.usecase.queue_service.fake_publisher import FakePublisher
from tests.usecase.queue_service.fakes import (
    FakeAccounts,
    FakeAnswers,
    FakeDrafts,
    FakeSchedule,
    FakeStream,
)

ORG = "acme"
M = TypeVar("M", SlotScheduled, SlotMoved, SlotCanceled, SlotRefused)
FILL = """
    with added as (
        insert into slot
        select :org, account || '-' || n, account || '-' || n, account, at, 'SCHEDULED', 'EXACT', 1, 0,
            at + interval '4 seconds', at + interval '1 day', '', null, null, null, null, 1, '', at, at
        from unnest(cast(:accounts as text[])) as account
        cross join generate_series(0, :count - 1) as n
        cross join lateral (select cast(:first as timestamptz) + n * cast(:step as interval) as at) as each
        returning organization_id, id
    ),
    targeted as (
        insert into slot_target select organization_id, id, 'facebook', '', '', null, 0, '', '', null, null from added
    )
    insert into account_queue
    select :org, account, 0, '', 0, false, 'epoch', 'epoch', 'epoch', :first
    from unnest(cast(:accounts as text[])) as account
    on conflict (organization_id, social_account_id)
        do update set next_due_time = least(account_queue.next_due_time, excluded.next_due_time)
"""


# Makes slots look as if they came from weekly slots in UTC.
WEEKLY = """
    update slot set origin = 'QUEUE', time_zone = 'UTC', local_date = cast(schedule_time as date),
        local_time = cast(schedule_time as time), nominal_local_time = cast(schedule_time as timestamp),
        tzdata_version = :release
    where organization_id = :org and social_account_id = any(:accounts)
"""
# Puts slots where older time zone data would have put them: first far away, because of a unique index.
OUTDATE = (
    """
    update slot set schedule_time = schedule_time + interval '9999 days', not_after = not_after + interval '9999 days'
    where organization_id = :org and social_account_id = :account and state = 'SCHEDULED' and origin = 'QUEUE'
    """,
    """
    update slot set schedule_time = schedule_time - interval '9999 days' + cast(:shift as interval),
        not_after = not_after - interval '9999 days' + cast(:shift as interval), tzdata_version = :release
    where organization_id = :org and social_account_id = :account and state = 'SCHEDULED' and origin = 'QUEUE'
    """,
    "update slot set tzdata_version = :release where organization_id = :org and social_account_id = :account",
    """
    update account_queue set tzdata_version = :release, next_due_time = (
        select min(schedule_time) from slot
        where organization_id = :org and social_account_id = :account and state = 'SCHEDULED'
    )
    where organization_id = :org and social_account_id = :account
    """,
)


class Queue:
    """The service without its process, with a clock that tests set."""

    def __init__(self, database: Database, policy: Policy) -> None:
        self.database = database
        self.policy = policy
        self.clock = FrozenDatabaseClock()
        self.schedule, self.drafts, self.stream = FakeSchedule(), FakeDrafts(), FakeStream()
        self.accounts = FakeAccounts()
        self.offered: list[OutboxRow] = []
        self.new_slots = asyncio.Event()
        outbox = Outbox(Uuid7Source(), self.offered.extend)
        self.ledger = ledger = RequestLedger(database, self.clock)
        find_draft = DraftFinder(database=database, drafts=self.drafts, check_accounts=AccountCheck(self.accounts))
        mover = SlotMover(outbox=outbox, policy=policy, release=tzdata_version())
        record = SlotRecorder(outbox=outbox, ids=Uuid7Source(), policy=policy, on_slots=self.new_slots.set)
        lock = AccountLock(mover)
        book = SlotBooker(lock=lock, record=record, policy=policy, release=mover.release)
        self.arranger = Arranger(outbox=outbox, mover=mover, policy=policy, on_slots=self.new_slots.set)
        read_times = SlotTimeReader(database=database, clock=self.clock, schedule=self.schedule, policy=policy)
        self.add_to_queue = AddToQueue(
            ledger=ledger,
            find_draft=find_draft,
            read_times=read_times,
            book=book,
            book_in_front=FrontBooker(lock=lock, arranger=self.arranger, record=record, policy=policy),
        )
        self.batch_add_to_queue = BatchAddToQueue(
            ledger=ledger, find_draft=find_draft, read_times=read_times, book=book
        )
        self.schedule_at = ScheduleAt(ledger=ledger, find_draft=find_draft, book=book)
        self.skip_next_slot = SkipNextSlot(
            ledger=ledger, accounts=AccountPresence(database, AccountCheck(self.accounts))
        )
        self.read_times = read_times
        self.catch_up = self.catching_up(tzdata_version())
        self.list = ListQueueSlots(database, self.clock)
        self.settle_slots = SettleSlots(policy, outbox)
        self.requested_times = RequestedTimes(mover=mover, record=record, arranger=self.arranger, outbox=outbox)
        self.follow_drafts = FollowDrafts(outbox=outbox, requested_times=self.requested_times)
        self.publisher = FakePublisher()
        self.take_back = TakeBack(publisher=self.publisher, settle=self.settle_slots)
        self.complete_take_backs = CompleteTakeBacks(database=database, clock=self.clock, take_back=self.take_back)
        self.answers = FakeAnswers()
        self.hand_over = self.handing_over()

    def handing_over(self) -> HandOver:
        """Returns the loops of another process, or of this one after a restart."""
        return HandOver(
            database=self.database,
            clock=self.clock,
            commands=self.stream,
            outstanding=Outstanding(database=self.database, commands=self.stream, answers=self.answers),
            policy=self.policy,
            wake=asyncio.Event(),
        )

    def catching_up(self, release: str) -> CatchUp:
        """Returns the loop of a process with this tzdata release."""
        outbox = Outbox(Uuid7Source(), self.offered.extend)
        return CatchUp(
            database=self.database,
            clock=self.clock,
            mover=SlotMover(outbox=outbox, policy=self.policy, release=release),
        )

    @property
    def now(self) -> datetime:
        return self.clock.moment

    @now.setter
    def now(self, moment: datetime) -> None:
        self.clock.moment = moment

    # what others announce

    async def apply(self, use_case: Callable[..., Awaitable[None]], *events: object) -> None:
        await self.database.run(lambda tx: use_case(tx, events, self.now))

    async def save_draft(
        self,
        draft_id: str,
        *targets: tuple[str, str, str] | str,
        revision: int = 1,
        version: int = 1,
        category: str = "",
        is_approved: bool = False,
        requested_time: datetime | None = None,
    ) -> Draft:
        """Saves a draft. A target is (account, channel, destination), or an account, which means its Facebook feed."""
        draft = Draft(
            organization_id=ORG,
            id=draft_id,
            revision=revision,
            targets=tuple(
                Target(social_account_id=each, channel="facebook", destination="")
                if isinstance(each, str)
                else Target(social_account_id=each[0], channel=each[1], destination=each[2])
                for each in targets
            ),
            category_id=category,
        )
        if draft_id not in self.drafts.drafts or self.drafts.drafts[draft_id].revision <= revision:
            self.drafts.drafts[draft_id] = draft
        saved = SavedDraft(draft=draft, version=version, is_approved=is_approved, requested_time=requested_time)
        await self.apply(self.follow_drafts, saved)
        return draft

    async def put_schedule(
        self,
        account: str,
        *slots: WeeklySlot,
        version: int = 1,
        cap: int = 0,
        enabled: bool = True,
        window: SendWindow | None = None,
        announce: bool = True,
    ) -> None:
        """Saves a schedule in Schedule. With `announce` Queue gets the event, too."""
        self.schedule.slots[account] = list(slots) if enabled else []
        self.schedule.windows.pop(account, None)
        if window:
            self.schedule.windows[account] = window
        self.schedule.schedules[account] = AnnouncedSchedule(
            organization_id=ORG,
            social_account_id=account,
            version=version,
            time_zone=self.schedule.zone,
            max_posts_per_day=cap,
            enabled=enabled,
        )
        if announce:
            await self.announce_schedule(account)

    async def announce_schedule(self, account: str, **changes: Any) -> None:
        schedule = self.schedule.schedules[account]
        fields = {"tzdata_version": "" if self.schedule.says_little else self.schedule.release} | changes
        await self.apply(follow_schedules, replace(schedule, **fields))

    async def delete_schedule(self, account: str, *, version: int) -> None:
        gone = replace(
            self.schedule.schedules.pop(account), version=version, time_zone="", max_posts_per_day=0, enabled=False
        )
        del self.schedule.slots[account]
        await self.apply(follow_schedules, gone)

    async def outdate(self, account: str, shift: timedelta, *, release: str = "2020a") -> None:
        """Moves the account's SCHEDULED weekly slots later, as if they had been computed with older time zone data."""
        async with self.database.transaction() as tx:
            for statement in OUTDATE:
                names = {"org": ORG, "account": account, "shift": shift, "release": release}
                used = {name: value for name, value in names.items() if f":{name}" in statement}
                await tx.connection.execute(text(statement), used)

    async def settle(self, *reports: JobReport) -> None:
        await self.apply(self.settle_slots, *reports)

    # calls

    async def add(
        self,
        draft_id: str,
        *accounts: str,
        request_id: str = "",
        organization_id: str = ORG,
        place: QueuePlace = QUEUE_PLACE_END,
    ) -> list[QueueSlot]:
        call = self.call_add(draft_id, *accounts, request_id=request_id, organization_id=organization_id, place=place)
        order = QueueOrder(
            organization_id=organization_id,
            draft_id=draft_id,
            social_account_ids=accounts,
            in_front=is_in_front(place),
        )
        return list((await self.add_to_queue(call, order)).queue_slots)

    @staticmethod
    def call_add(
        draft_id: str,
        *accounts: str,
        request_id: str = "",
        organization_id: str = ORG,
        place: QueuePlace = QUEUE_PLACE_END,
    ) -> Call[Any, AddToQueueResponse]:
        request = AddToQueueRequest(
            organization_id=organization_id,
            draft_id=draft_id,
            social_account_ids=accounts,
            request_id=request_id,
            place=place,
        )
        return mutation(request, AddToQueueResponse, add_to_queue_response)

    async def at(
        self, draft_id: str, moment: datetime, *accounts: str, request_id: str = "", organization_id: str = ORG
    ) -> list[QueueSlot]:
        call = self.call_at(draft_id, moment, *accounts, request_id=request_id, organization_id=organization_id)
        order = self.exact_order(draft_id, moment, *accounts, organization_id=organization_id)
        return list((await self.schedule_at(call, order)).queue_slots)

    @staticmethod
    def call_at(
        draft_id: str, moment: datetime, *accounts: str, request_id: str = "", organization_id: str = ORG
    ) -> Call[Any, ScheduleAtResponse]:
        request = ScheduleAtRequest(
            organization_id=organization_id,
            draft_id=draft_id,
            schedule_time=timestamp(moment),
            social_account_ids=accounts,
            request_id=request_id,
        )
        return mutation(request, ScheduleAtResponse, schedule_at_response)

    @staticmethod
    def exact_order(draft_id: str, moment: datetime, *accounts: str, organization_id: str = ORG) -> ExactOrder:
        return ExactOrder(
            organization_id=organization_id, draft_id=draft_id, schedule_time=moment, social_account_ids=accounts
        )

    async def batch(
        self,
        *items: tuple[str, str] | tuple[str, str, datetime | None],
        request_id: str = "",
        organization_id: str = ORG,
    ) -> list[QueueItemResult]:
        """Adds drafts on accounts, each at a time of its own if one is given."""
        request = BatchAddToQueueRequest(
            organization_id=organization_id,
            items=[
                QueueItem(draft_id=draft_id, social_account_id=account, schedule_time=timestamp(at[0] if at else None))
                for draft_id, account, *at in items
            ],
            request_id=request_id,
        )
        call = batches.in_chunks(mutation(request, BatchAddToQueueResponse, batches.item_results))
        batch = Batch(organization_id=organization_id, items=batches.items(request))
        return list(await self.batch_add_to_queue(call, batch))

    async def skip(self, account: str, *, undo: bool = False, request_id: str = "") -> ShownQueue:
        request = SkipNextSlotRequest(organization_id=ORG, social_account_id=account, undo=undo, request_id=request_id)
        call = mutation(request, SkipNextSlotResponse, skip_next_slot_response)
        return (await self.skip_next_slot(call, Skip(account=(ORG, account), undo=undo))).queue

    # what it has stored

    async def rows(self, sql: str, **names: object) -> list[Any]:
        async with self.database.statement() as connection:
            return list((await connection.execute(text(sql), names)).all())

    async def until_waiting(self) -> None:
        """Waits until another transaction waits for a lock."""
        waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        await eventually(lambda: self.rows(waiting))

    async def states(self) -> dict[str, str]:
        return {row.draft_id: row.state for row in await self.rows("select draft_id, state from slot")}

    async def fill(
        self, account: str | list[str], first: datetime, step: timedelta, count: int, organization_id: str = ORG
    ) -> None:
        """Inserts slots at regular times on one account or several, as if they had been booked one by one."""
        accounts = [account] if isinstance(account, str) else account
        names = {"org": organization_id, "accounts": accounts, "first": first, "step": step, "count": count}
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(FILL), names)

    async def fill_weekly(
        self, account: str | list[str], first: datetime, step: timedelta, count: int, *, release: str = tzdata_version()
    ) -> None:
        """Inserts slots as `fill` does, but as if they came from a schedule."""
        accounts = [account] if isinstance(account, str) else account
        await self.fill(accounts, first, step, count)
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(WEEKLY), {"org": ORG, "accounts": accounts, "release": release})

    async def announced(self) -> list[SlotScheduled]:
        return await self._announced(SlotScheduled)

    async def moves(self) -> list[SlotMoved]:
        return await self._announced(SlotMoved)

    async def refusals(self) -> list[SlotRefused]:
        return await self._announced(SlotRefused)

    async def cancellations(self) -> list[SlotCanceled]:
        return await self._announced(SlotCanceled)

    async def _announced(self, kind: type[M]) -> list[M]:
        return [
            kind.FromString(each.payload)
            for row in await self.rows("select payload from outbox order by position")
            for each in bus_pb2.Envelope.FromString(row.payload).events
            if each.type == kind.DESCRIPTOR.full_name
        ]

    @staticmethod
    def time_of(slot: QueueSlot) -> datetime:
        return slot.schedule_time.ToDatetime(UTC)

    async def times(self) -> list[datetime]:
        return [row.schedule_time for row in await self.rows("select schedule_time from slot order by 1")]

    def report_on(self, slot: QueueSlot, state: JobState, version: int = 1, **changes: Any) -> JobReport:
        """Makes Publisher's announcement of the job of a slot's first target."""
        target = slot.targets[0].target
        about = Command(
            organization_id=ORG,
            slot_id=slot.id,
            revision=slot.revision,
            emission=1,
            draft_id=slot.draft_id,
            social_account_id=slot.social_account_id,
            channel=target.channel,
            destination=target.destination,
            schedule_time=self.time_of(slot),
            not_after=slot.not_after.ToDatetime(UTC),
            content_revision=1,
            traceparent="",
            slot_sequence=1,
            time_zone="",
        )
        return self.report(about, state, version, **changes)

    @staticmethod
    def report(command: Command, state: JobState, version: int = 1, **changes: Any) -> JobReport:
        """Makes Publisher's announcement of the job of a command."""
        facts: dict[str, Any] = {
            "organization_id": command.organization_id,
            "slot_id": command.slot_id,
            "slot_revision": command.revision,
            "draft_id": command.draft_id,
            "social_account_id": command.social_account_id,
            "channel": command.channel,
            "destination": command.destination,
            "job_id": f"job-{command.draft_id}-{command.channel}-{command.destination}",
            "state": state,
            "version": version,
            "external_url": "https://example.org/1" if state is JobState.PUBLISHED else "",
            "error_message": "no" if state is JobState.FAILED else "",
            "state_reason": "",
            "next_action_time": None,
            "publish_time": command.schedule_time if state is JobState.PUBLISHED else None,
        }
        return JobReport(**facts | changes)


@pytest.fixture
def make_queue(database: Database) -> Callable[[Policy], Queue]:
    """Makes any number of queues on one database, each with its own clock and stream."""
    return lambda policy: Queue(database, policy)


@pytest.fixture
def queue(make_queue: Callable[[Policy], Queue]) -> Queue:
    return make_queue(Policy())


class Statements:
    """Records the statements that go to the database, and counts the elements of their array parameters."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.elements = 0

    def __call__(self, statement: str, parameters: Sequence[Any]) -> None:
        self.texts.append(statement)
        self.elements += sum(len(each) for each in parameters if isinstance(each, list))

    def clear(self) -> None:
        self.texts.clear()
        self.elements = 0


@pytest.fixture
def statements(database: Database) -> Statements:
    counted = Statements()
    listen(database, counted)
    return counted
