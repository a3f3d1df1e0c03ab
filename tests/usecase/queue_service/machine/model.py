"""A small model of queues: it keeps what callers are promised, and looks at every time of every schedule."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from civil.days import local_day
from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import DEFAULT_POLICY, PACE, LateAction, LatePolicy
from queue_service.domain.policy import Policy
from queue_service.domain.slot import SlotOrigin, SlotState
from testkit.clocks import START

NOTICE, LEAD, LATE_LIMIT = Policy().notice, Policy().lead, Policy().late_limit
MINUTE, HORIZON = timedelta(minutes=1), timedelta(days=730)
LIVE = (SlotState.SCHEDULED, SlotState.DISPATCHED)
COUNTED = (*LIVE, SlotState.PUBLISHED, SlotState.PARTIALLY_PUBLISHED, SlotState.NEEDS_ATTENTION)
ENDED = (JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.CANCELED, JobState.NEEDS_ATTENTION)
STARTED = (*ENDED, JobState.SENDING)
NEWS = "news"
"""The category for which the weekly slots at half past are kept."""


Seat = tuple[datetime, SlotOrigin]


class Refusal(Exception):
    """Says that a call is refused, for this reason."""


def require(holds: object, reason: str) -> None:
    if not holds:
        raise Refusal(reason)


@dataclass
class Draft:
    id: str
    # The channels by account.
    targets: dict[str, tuple[str, ...]]
    category: str = ""
    published: set[tuple[str, str]] = field(default_factory=set)
    # The time that it has asked for.
    asked: datetime | None = None

    def accounts(self, asked: Collection[str]) -> list[str]:
        require(set(asked) <= set(self.targets), "ACCOUNT_NOT_A_TARGET")
        return list(dict.fromkeys(asked)) or sorted(self.targets)

    def unpublished(self, account: str) -> list[str]:
        return [channel for channel in self.targets[account] if (account, channel) not in self.published]


@dataclass
class Slot:
    """The `number`-th slot of a draft on an account, with the jobs of its targets by channel."""

    draft: str
    number: int
    category: str
    time: datetime
    origin: SlotOrigin
    not_after: datetime
    jobs: dict[str, JobState | None]
    state: SlotState = SlotState.SCHEDULED
    revision: int = 1
    reason: str = ""
    # The targets that Publisher has given back since the slot was dispatched, to be canceled if there is a reason.
    given_back: set[str] = field(default_factory=set)

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def is_scheduled(self) -> bool:
        return self.state is SlotState.SCHEDULED

    @property
    def can_shift(self) -> bool:
        return self.is_scheduled and self.origin is SlotOrigin.QUEUE

    @property
    def seat(self) -> Seat:
        return self.time, self.origin

    def cancel(self, reason: str) -> None:
        self.state, self.reason, self.revision = SlotState.CANCELED, reason, self.revision + 1

    def give_back(self, reason: str = "") -> None:
        """Has Publisher give back the targets that have not started: to be sent again, or to be canceled."""
        self.reason = reason or self.reason
        for channel, job in self.jobs.items():
            if job not in STARTED:
                self.jobs[channel] = JobState.CANCELED
                self.given_back.add(channel)
        self.settle()
        if not self.given_back and self.state is SlotState.DISPATCHED:
            self.reason = ""

    def settle(self) -> None:
        """Ends a slot whose targets have ended, or gives it back to the queue."""
        if any(job not in ENDED for job in self.jobs.values()):
            return
        if self.given_back and not self.reason:
            self.jobs |= dict.fromkeys(self.given_back)
            self.given_back, self.state, self.revision = set(), SlotState.SCHEDULED, self.revision + 1
            return
        self.state = outcome(self.jobs.values())
        self.reason = self.reason if self.state is SlotState.CANCELED else ""


@dataclass(frozen=True)
class Schedule:
    slots: tuple[WeeklySlot, ...]
    zone: str
    cap: int
    enabled: bool

    def times(self, start: datetime, now: datetime, category: str) -> Iterator[datetime]:
        """Yields the slot times of a category from `start` on."""
        kept = [slot for slot in self.slots if (NEWS if slot.minute == 30 else "") == category]
        after = start - timedelta(microseconds=1)
        until = now + HORIZON - timedelta(microseconds=1)
        return (each.instant for each in occurrences(kept, find_zone(self.zone), after=after, until=until))

    def day(self, time: datetime) -> date:
        return local_day(time, find_zone(self.zone))


@dataclass
class Account:
    id: str
    schedule: Schedule | None = None
    slots: list[Slot] = field(default_factory=list)
    etag: int = 0
    is_paused: bool = False
    is_connected: bool = True
    skip_next: bool = False
    skipped: list[datetime] = field(default_factory=list)
    late_policy: LatePolicy = DEFAULT_POLICY
    pace: timedelta = PACE

    @property
    def live(self) -> list[Slot]:
        return sorted((slot for slot in self.slots if slot.is_live), key=lambda slot: slot.time)

    @property
    def scheduled(self) -> list[Slot]:
        return [slot for slot in self.live if slot.is_scheduled]

    @property
    def shiftable(self) -> list[Slot]:
        return [slot for slot in self.live if slot.can_shift]

    @property
    def is_held_up(self) -> bool:
        return self.is_paused or not self.is_connected or (self.schedule is not None and not self.schedule.enabled)

    def late(self, now: datetime) -> list[Slot]:
        """Returns the slots to which the late policy gives other times."""
        if self.late_policy.action is not LateAction.RESLOT:
            return []
        return [slot for slot in self.scheduled if slot.time < now - self.late_policy.grace]

    def of(self, draft: str) -> Slot | None:
        """Returns the newest slot of a draft."""
        return next((slot for slot in reversed(self.slots) if slot.draft == draft), None)

    def require_etag(self, etag: str) -> None:
        require(etag in {"", str(self.etag)}, "ETAG_MISMATCH")

    def limit(self, time: datetime) -> datetime:
        return time + self.late_policy.limit(LATE_LIMIT)

    def near(self, time: datetime) -> bool:
        return any(abs(slot.time - time) < MINUTE for slot in self.slots if slot.is_live)

    def free_times(self, now: datetime, category: str, *, start: datetime | None = None) -> Iterator[datetime]:
        """Yields the free slot times that are kept for a category, or for none."""
        schedule = self.require_schedule()
        counted = Counter(schedule.day(slot.time) for slot in self.slots if slot.state in COUNTED)
        for time in schedule.times(max(start or now, now + NOTICE), now, category):
            is_capped = schedule.cap and counted[schedule.day(time)] >= schedule.cap
            if time not in self.skipped and not is_capped and not self.near(time):
                yield time

    def next_free(self, now: datetime, category: str, *, start: datetime | None = None) -> Iterator[datetime]:
        """Yields the free slot times in the order in which drafts of the category take them."""
        for name in dict.fromkeys((category, "")):
            yield from self.free_times(now, name, start=start)
        raise Refusal("HORIZON_EXHAUSTED")

    def require_schedule(self) -> Schedule:
        require(self.schedule, "NO_SCHEDULE")
        assert self.schedule
        require(self.schedule.enabled, "SCHEDULE_DISABLED")
        return self.schedule

    def first_free(self, now: datetime, category: str) -> tuple[datetime, datetime | None]:
        """Returns the time that a draft gets at the end, and the one that a pending skip leaves empty before it."""
        free = self.next_free(now, category)
        time = next(free)
        return (next(free), time) if self.skip_next else (time, None)

    def take(self, now: datetime, category: str) -> datetime:
        time, skipped = self.first_free(now, category)
        if skipped:
            self.skip_next = False
            self.skipped = [*(each for each in self.skipped if each >= now + NOTICE), skipped]
        return time

    def without(self, *slots: Slot) -> "Account":
        """Returns the account as if the slots had left it."""
        others = [each for each in self.slots if not any(each is slot for slot in slots)]
        return replace(self, slots=others)

    def reseated(self, slots: list[Slot], now: datetime) -> list[datetime]:
        """Returns the free times that the slots get, which leave their own, in their order."""
        self.require_schedule()
        placed = self.without(*slots)
        times = []
        for slot in slots:
            time = next(placed.next_free(now, slot.category))
            placed.slots.append(replace(slot, time=time))
            times.append(time)
        return times

    def book(self, draft: Draft, time: datetime, origin: SlotOrigin) -> None:
        number = sum(slot.draft == draft.id for slot in self.slots)
        jobs: dict[str, JobState | None] = dict.fromkeys(draft.unpublished(self.id))
        self.slots.append(Slot(draft.id, number, draft.category, time, origin, self.limit(time), jobs))
        self.etag += 1

    def seat(self, slots: list[Slot], seats: Iterable[Seat]) -> bool:
        """Gives the slots these seats, in their order, and returns whether one has moved."""
        moved = [(slot, seat) for slot, seat in zip(slots, seats, strict=True) if slot.seat != seat]
        for slot, (time, origin) in moved:
            slot.time, slot.origin, slot.not_after = time, origin, self.limit(time)
            slot.revision += 1
        return bool(moved)


@dataclass
class Model:
    accounts: dict[str, Account]
    drafts: dict[str, Draft]
    now: datetime = START

    def attempt(self, change: Callable[[], None]) -> str:
        """Returns OK, or the reason for which the change is refused."""
        try:
            change()
        except Refusal as refusal:
            return str(refusal)
        return "OK"

    def reserve(self, draft_id: str, asked: Collection[str]) -> list[Account]:
        """Returns the accounts on which the draft is to get slots."""
        draft = self.drafts[draft_id]
        accounts = [self.accounts[account] for account in draft.accounts(asked)]
        require(all(account.is_connected for account in accounts), "ACCOUNT_NOT_CONNECTED")
        for account in accounts:
            slot = account.of(draft_id)
            require(slot is None or not slot.is_live, "ALREADY_QUEUED")
        for account in accounts:
            require(draft.unpublished(account.id), "DRAFT_PUBLISHED")
        return accounts


def outcome(jobs: Collection[JobState | None]) -> SlotState:
    ends = set(jobs)
    if JobState.NEEDS_ATTENTION in ends:
        return SlotState.NEEDS_ATTENTION
    if JobState.PUBLISHED in ends:
        return SlotState.PUBLISHED if len(ends) == 1 else SlotState.PARTIALLY_PUBLISHED
    return SlotState(str(*ends)) if len(ends) == 1 else SlotState.FAILED


def paced(others: list[datetime], number: int, first: datetime, pace: timedelta) -> list[datetime]:
    """Returns times from `first` on, `pace` apart and a minute away from the others."""
    times: list[datetime] = []
    time = first
    for _ in range(number):
        while near := [other for other in others if abs(other - time) < MINUTE]:
            time = min(near) + MINUTE
        times.append(time)
        time += pace
    return times


def drafts() -> dict[str, Draft]:
    """Makes drafts of all kinds: on one account or both, with one target or two, with a category or without."""
    kinds = [("page",), ("page",), ("site",), ("page", "site")]
    made = {}
    for place in range(24):
        names = ("feed", "story") if place % 5 == 4 else ("feed",)
        targets = {account: tuple(f"{account}_{name}" for name in names) for account in kinds[place % 4]}
        made[f"d{place}"] = Draft(f"d{place}", targets, NEWS if place % 3 == 2 else "")
    return made
