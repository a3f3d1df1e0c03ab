"""Two clients of one queue service, each with a process of its own, among neighbours that they share."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_service_pb2 import ReorderQueueRequest, ReorderQueueResponse
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.follow_schedules import follow_schedules
from queue_service.application.reorder_queue import NewOrder, ReorderQueue
from queue_service.application.reslot_late import ReslotLate
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.account import AnnouncedSchedule, Connection
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import TakingBack
from queue_service.domain.take_back import SlotPost
from queue_service.wire import rearrangements
from servicekit.faults import Fault
from servicekit.pg.ledger import mutation
from tests.usecase.queue_service.fakes import FakeSchedule
from tests.usecase.queue_service.machine.model import NEWS, Draft, Schedule
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

ORG = "acme"
EMPTY = "truncate slot_target, slot, account_queue, draft, social_account, outbox, request_ledger, sent_commands"


async def answer(call: Awaitable[Any]) -> str:
    """Returns OK, or the reason for which the call is refused."""
    try:
        await call
    except Fault as fault:
        return fault.reason
    return "OK"


class Client:
    """One client; `queue` is its process."""

    def __init__(self, queue: "Queue") -> None:
        self.queue = queue
        self.pausing, self.rearranging = Pausing(queue), Rearranging(queue)
        self._reorder = ReorderQueue(ledger=queue.ledger, arranger=queue.arranger)
        self.reslot_late = ReslotLate(
            database=queue.database,
            clock=queue.clock,
            policy=queue.policy,
            arranger=queue.arranger,
            times=TimesOnDemand(queue.read_times),
        )

    async def reorder(self, account: str, drafts: tuple[str, ...], etag: str) -> None:
        request = ReorderQueueRequest(organization_id=ORG, social_account_id=account, draft_ids=drafts, etag=etag)
        call = mutation(request, ReorderQueueResponse, rearrangements.reorder_queue_response)
        asked = NewOrder(account=(ORG, account), order=rearrangements.order(request), etag=etag)
        await self._reorder(call, asked)

    async def dispatch(self) -> None:
        while await self.queue.hand_over.dispatch():
            pass
        for command in self.queue.stream.taken():
            # A new run of the job.
            self.queue.publisher.states.pop((command.draft_id, command.channel, command.destination), None)


@dataclass
class Neighbours:
    """Remembers what Schedule and Publisher have announced so far."""

    versions: dict[str, int] = field(default_factory=dict)
    reports: list[JobReport] = field(default_factory=list)

    def next_version(self, what: str) -> int:
        self.versions[what] = self.versions.get(what, 0) + 1
        return self.versions[what]


class World:
    def __init__(self, make_queue: Callable[[Policy], "Queue"]) -> None:
        self.clients = (Client(make_queue(Policy())), Client(make_queue(Policy())))
        first, second = (client.queue for client in self.clients)
        second.schedule.slots, second.schedule.schedules = first.schedule.slots, first.schedule.schedules
        second.schedule.zones, second.schedule.kept = first.schedule.zones, first.schedule.kept
        second.drafts.drafts = first.drafts.drafts
        second.publisher.states, second.publisher.versions = first.publisher.states, first.publisher.versions
        second.publisher.asked = first.publisher.asked
        self.queue, self.schedule, self.publisher = first, first.schedule, first.publisher
        self.neighbours = Neighbours()
        self._drafts: dict[str, Draft] = {}

    async def begin(self, now: datetime, drafts: dict[str, Draft]) -> None:
        """Empties the database, and announces the drafts."""
        async with self.queue.database.transaction() as tx:
            await tx.connection.exec_driver_sql(EMPTY)
        self.set_clock(now)
        self._drafts = drafts
        for draft in drafts.values():
            await self._save_draft(self.queue, draft, None)

    def set_clock(self, now: datetime) -> None:
        for client in self.clients:
            client.queue.now = now

    async def put_schedule(self, account: str, schedule: Schedule, *, announce: bool = True) -> None:
        announced = AnnouncedSchedule(
            organization_id=ORG,
            social_account_id=account,
            version=self.neighbours.next_version(f"schedule of {account}"),
            time_zone=schedule.zone,
            max_posts_per_day=schedule.cap,
            enabled=schedule.enabled,
        )
        store_schedule(self.schedule, announced, schedule.slots if schedule.enabled else ())
        if announce:
            await self.announce_schedule(account)

    async def announce_schedule(self, account: str) -> None:
        announced = replace(self.schedule.schedules[account], tzdata_version=self.schedule.release)
        await self.queue.apply(follow_schedules, announced)

    async def connect(self, account: str, *, is_connected: bool) -> None:
        connection = Connection(
            organization_id=ORG,
            social_account_id=account,
            version=self.neighbours.next_version(f"connection of {account}"),
            is_connected=is_connected,
        )
        for client in self.clients:
            (client.queue.accounts.disconnected.discard if is_connected else client.queue.accounts.disconnected.add)(
                account
            )
        await self.queue.apply(follow_accounts, connection)

    async def ask_for_time(self, queue: "Queue", draft_id: str, time: datetime) -> None:
        await self._save_draft(queue, self._drafts[draft_id], time)

    async def _save_draft(self, queue: "Queue", draft: Draft, time: datetime | None) -> None:
        targets = [(account, channel, "") for account, each in draft.targets.items() for channel in each]
        version = self.neighbours.next_version(f"draft {draft.id}")
        await queue.save_draft(
            draft.id,
            *targets,
            version=version,
            category=draft.category,
            is_approved=time is not None,
            requested_time=time,
        )

    async def slot_id(self, account: str, draft: str) -> str:
        """Returns the newest slot of a draft."""
        newest = """
            select id from slot where draft_id = :draft and social_account_id = :account order by sequence desc limit 1
        """
        rows = await self.queue.rows(newest, draft=draft, account=account)
        return str(rows[0].id) if rows else "none"

    async def report(self, queue: "Queue", draft: str, account: str, channel: str, state: JobState) -> None:
        """Has Publisher report about the newest slot of a draft, unless it has given the post back."""
        rows = await self.queue.rows(
            """
            select id, revision, sequence, state from slot
            where draft_id = :draft and social_account_id = :account order by sequence desc limit 1
            """,
            draft=draft,
            account=account,
        )
        if not rows or rows[0].state != "DISPATCHED":
            return
        row = rows[0]
        post = SlotPost(
            organization_id=ORG,
            social_account_id=account,
            slot_id=row.id,
            slot_revision=row.revision,
            slot_sequence=row.sequence,
            draft_id=draft,
            purpose=TakingBack.NO,
            reason="",
            channel=channel,
            destination="",
        )
        if self._has_given_back(post):
            return
        if state is JobState.READY:
            self.publisher.states.pop((draft, channel, ""), None)
        else:
            self.publisher.states[draft, channel, ""] = state
        report = self.publisher.report(post, state)._replace(state_reason="")
        self.neighbours.reports.append(report)
        await queue.settle(report)

    def _has_given_back(self, post: SlotPost) -> bool:
        key = (post.slot_key, post.slot_revision, post.channel)
        asked = ((each.slot_key, each.slot_revision, each.channel) for page in self.publisher.asked for each in page)
        return key in asked and self.publisher.states.get((post.draft_id, post.channel, "")) is None


def store_schedule(schedule: FakeSchedule, announced: AnnouncedSchedule, slots: tuple[WeeklySlot, ...]) -> None:
    account = announced.social_account_id
    schedule.slots[account], schedule.schedules[account] = list(slots), announced
    schedule.zones[account] = announced.time_zone
    schedule.kept |= {slot: NEWS for slot in slots if slot.minute == 30}


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """Carries out calls at the same time."""

    async def carried_out(call: Awaitable[Any]) -> Any:
        return await call

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(carried_out(call)) for call in calls]
    return [task.result() for task in tasks]
