"""Fakes of Schedule, Drafts, Publisher and the stream, and a clock that tests set."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from civil.weekly import Occurrence, WeeklySlot, none_is_within, occurrences
from civil.windows import SendWindow
from civil.zones import find_zone, tzdata_version
from queue_service.domain.account import AccountKey, AccountQueue, AnnouncedSchedule, Connection
from queue_service.domain.command import Command, SentCommand
from queue_service.domain.draft import Draft
from queue_service.domain.passed_times import OfferedTime
from queue_service.domain.rescheduling import Timetable
from queue_service.domain.slot_times import SlotTimes
from queue_service.domain.stream import Hearing, Holding, Room
from servicekit.faults import DeadlineExceeded, Fault, NotFound


@dataclass
class FakeSchedule:
    """Answers as Schedule does, page by page, from weekly slots, and counts the questions.

    With `says_little` it is of the release that answers with times and versions only.
    """

    slots: dict[str, list[WeeklySlot]] = field(default_factory=dict)
    schedules: dict[str, AnnouncedSchedule] = field(default_factory=dict)
    # The categories for which weekly slots are kept.
    kept: dict[WeeklySlot, str] = field(default_factory=dict)
    # The send windows of accounts that have one.
    windows: dict[str, SendWindow] = field(default_factory=dict)
    zone: str = "UTC"
    # The zones of accounts that have another one.
    zones: dict[str, str] = field(default_factory=dict)
    # What it answers instead, to all questions or to those about an account.
    fault: Fault | None = None
    faults: dict[str, Fault] = field(default_factory=dict)
    # It answers about these accounts once it was asked about as many of them as their barrier says.
    meetings: dict[str, asyncio.Barrier] = field(default_factory=dict)
    asked: int = 0
    page: int = 1000
    says_little: bool = False
    # Its tzdata release, and how much later a slot comes by that than by the data in force.
    release: str = tzdata_version()
    shift: timedelta = timedelta(0)

    async def slot_times(
        self,
        organization_id: str,
        queue: AccountQueue,
        *,
        start: datetime,
        horizon: datetime,
        count: int,
        category_id: str | None = None,
        needed: int = 1,
    ) -> SlotTimes:
        self.asked += 1
        if fault := self.fault or self.faults.get(queue.social_account_id):
            raise fault
        if meeting := self.meetings.get(queue.social_account_id):
            async with asyncio.timeout(10):
                await meeting.wait()
        if queue.social_account_id not in self.slots:
            raise NotFound("SCHEDULE_NOT_FOUND", "no")
        count = min(count, self.page)
        after, until = start - self.shift - timedelta(microseconds=1), horizon - self.shift
        found: list[Occurrence] = []
        zone = self.zones.get(queue.social_account_id, self.zone)
        slots = [
            slot
            for slot in self.slots[queue.social_account_id]
            if category_id is None or self.kept.get(slot, "") == category_id
        ]
        window = self.windows.get(queue.social_account_id)
        for each in occurrences(slots, find_zone(zone), after=after, until=until, within=window):
            if len(found) == count or each.instant >= until:
                break
            found.append(each)
        cut_off = len(found) == count
        times = tuple(each.instant + self.shift for each in found)
        schedule = replace(self.schedules[queue.social_account_id], organization_id=organization_id)
        return SlotTimes(
            schedule_version=schedule.version,
            after=start,
            until=times[-1] + timedelta(microseconds=1) if cut_off else horizon,
            times=times,
            nominals=tuple(None if self.says_little else each.nominal for each in found),
            last=not cut_off,
            all_outside=not found and none_is_within(self.slots[queue.social_account_id], window),
            schedule=None if self.says_little else replace(schedule, tzdata_version=self.release),
        )

    async def offered_times(self, account: AccountKey, start: datetime, end: datetime) -> list[OfferedTime]:
        """Answers with the times of all categories, also outside the send window."""
        self.asked += 1
        if fault := self.fault or self.faults.get(account[1]):
            raise fault
        if account[1] not in self.slots:
            raise NotFound("SCHEDULE_NOT_FOUND", "no")
        after = start - timedelta(microseconds=1)
        found = occurrences(self.slots[account[1]], find_zone(self.zone), after=after, until=end)
        return [
            OfferedTime(each.instant, self.kept.get(each.slot, ""), self._is_outside(account[1], each))
            for each in found
            if each.instant < end
        ]

    def _is_outside(self, account: str, found: Occurrence) -> bool:
        return account in self.windows and not self.windows[account].contains(found.local)

    async def timetable(self, organization_id: str, social_account_id: str) -> Timetable:
        self.asked += 1
        if fault := self.fault or self.faults.get(social_account_id):
            raise fault
        if social_account_id not in self.slots:
            raise NotFound("SCHEDULE_NOT_FOUND", "no")
        schedule = self.schedules[social_account_id]
        return Timetable(
            weekly_slots={slot: self.kept.get(slot, "") for slot in self.slots[social_account_id]},
            time_zone=schedule.time_zone,
            max_posts_per_day=schedule.max_posts_per_day,
            enabled=schedule.enabled,
            send_window=self.windows.get(social_account_id),
        )


@dataclass
class FakeDrafts:
    drafts: dict[str, Draft] = field(default_factory=dict)
    asked: int = 0
    fault: Fault | None = None
    slow: bool = False
    unapproved: set[str] = field(default_factory=set)

    async def is_approved(self, organization_id: str, draft_id: str) -> bool:
        self.asked += 1
        if self.fault:
            raise self.fault
        return draft_id not in self.unapproved

    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> Draft:
        self.asked += 1
        if self.fault:
            raise self.fault
        if self.slow and is_optional:
            raise DeadlineExceeded("DEADLINE_EXCEEDED", "not within a second")
        draft = self.drafts.get(draft_id)
        if draft is None or draft.organization_id != organization_id:
            raise NotFound("DRAFT_NOT_FOUND", f"draft {draft_id} does not exist")
        return draft


@dataclass
class FakeAccounts:
    """Publisher's accounts: all exist and are connected, except those named."""

    missing: set[str] = field(default_factory=set)
    disconnected: set[str] = field(default_factory=set)
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list)
    version: int = 9

    async def is_connected(self, organization_id: str, social_account_id: str) -> bool:
        return (await self.find_connection(organization_id, social_account_id)).is_connected

    async def find_connection(self, organization_id: str, social_account_id: str) -> Connection:
        self.asked.append(social_account_id)
        if self.fault:
            raise self.fault
        if social_account_id in self.missing:
            raise NotFound("ACCOUNT_NOT_FOUND", "no")
        return Connection(
            organization_id=organization_id,
            social_account_id=social_account_id,
            version=self.version,
            is_connected=social_account_id not in self.disconnected,
        )


@dataclass
class FakeStream:
    """Stores commands, except those of the drafts in `loses`. Has room for `limit`, and none for those in `filled`.

    It holds what was sent until it is taken.
    """

    limit: int = 10_000
    filled: frozenset[str] = frozenset()
    sent: list[Command] = field(default_factory=list)
    loses: set[str] = field(default_factory=set)
    sequences: dict[Command, int] = field(default_factory=dict)
    stored: list[SentCommand] = field(default_factory=list)
    may_send: asyncio.Event | None = None
    first_sequence: int = 1

    async def room(self) -> Room:
        return Room(self.limit, self.filled)

    async def send(self, commands: Sequence[Command]) -> list[Command]:
        if self.may_send:
            await self.may_send.wait()
        for each in commands:
            if each.draft_id not in self.loses:
                self.sequences[each] = len(self.sequences) + 1
                self.sent.append(each)
                place = (each.organization_id, each.slot_id, each.emission, each.channel, each.destination)
                self.stored.append(SentCommand(*place, self.sequences[each]))
        return [each for each in commands if each.draft_id in self.loses]

    def take_stored(self) -> list[SentCommand]:
        stored, self.stored = self.stored, []
        return stored

    async def holding(self) -> Holding | None:
        held = {self.sequences[each] for each in self.sent}
        last = len(self.sequences)
        return Holding(1, last, set(range(1, last + 1)) - held)

    def taken(self) -> list[Command]:
        taken, self.sent = self.sent, []
        return taken


@dataclass
class FakeAnswers:
    """The stream of events: Queue has heard all of them, unless a test says otherwise."""

    last: int = 0
    heard: int | None = None

    async def hearing(self) -> Hearing | None:
        return Hearing(self.last, self.last if self.heard is None else self.heard)
