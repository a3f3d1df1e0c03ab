"""A timer: which occurrence is in hand, and what people and new laws change about it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

from civil.cron import Cron, Dst, Firing, InvalidCron, firings, parse_cron
from civil.zones import DAY, Zone, tzdata_version
from servicekit.faults import AlreadyExists, Conflict, LimitReached, NotFound, Refused

KEPT = timedelta(days=7)
"""How long a timer that has fired for the last time is kept."""
MOST_TIMERS = 100_000
"""Of an organization, not counting those that have fired for the last time."""


class TimerState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    FINISHED = "FINISHED"
    FAULTY = "FAULTY"
    """It came due and could not be read."""


class MisfirePolicy(StrEnum):
    """What becomes of times that passed while nothing could fire."""

    FIRE_ONCE = "FIRE_ONCE"
    SKIP = "SKIP"
    FIRE_ALL = "FIRE_ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    organization_id: str
    id: str
    topic: str
    payload: bytes
    fire_time: datetime | None  # of one that fires once; None: `cron` says when
    cron: str  # read in `zone`; it names none itself
    zone: Zone
    dst_policy: Dst
    repeat_until: datetime | None
    misfire_policy: MisfirePolicy
    catch_up_interval: timedelta
    skip_after: timedelta
    auto_remove: bool
    paused: bool = False
    due_time: datetime | None  # the occurrence in hand; None: there is none any more
    sleep_until: datetime | None  # when the engine looks at it next; None: it does not
    fence: int = 0  # grows when the engine takes it in hand, and when anybody else changes what the engine writes
    fire_count: int = 0
    last_fire_time: datetime | None = None
    last_occurrence_key: str = ""  # of its own schedule
    finish_time: datetime | None = None
    tzdata_version: str  # the law that `due_time` follows
    traceparent: str = ""
    version: int = 1  # grows with every change that a person makes
    create_time: datetime
    update_time: datetime

    @property
    def state(self) -> TimerState:
        if self.finish_time is not None:
            return TimerState.FINISHED
        if self.paused:
            return TimerState.PAUSED
        return TimerState.FAULTY if self.sleep_until is None else TimerState.ACTIVE

    @property
    def fault(self) -> str:
        """Why it cannot fire, or does not although it could; empty: nothing is wrong with it."""
        if self.state is TimerState.FINISHED:
            return ""
        if unreadable := self.unreadable:
            return unreadable
        if self.state is TimerState.FAULTY:
            return "could not be read when it came due; this release can read it, and ResumeTimer sets it going"
        return ""

    @property
    def unreadable(self) -> str:
        """What the release in use cannot make sense of; empty: it can. Of one that fires once nothing is asked."""
        if not self.cron:
            return ""
        if not self.zone.is_known:
            return f"tzdata {tzdata_version()} has no time zone {self.zone.name!r}"
        try:
            _parsed(self.cron)
        except InvalidCron as invalid:
            return f"the cron expression cannot be read: {invalid}"
        return ""

    @property
    def etag(self) -> str:
        # The creation time tells it from a timer that had its id before it.
        edition = f"{self.id} {self.create_time.isoformat()} {self.version}"
        return sha256(edition.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """One occurrence of a timer, made."""

    organization_id: str
    timer_id: str
    topic: str
    payload: bytes
    occurrence_key: str
    due_time: datetime
    fire_time: datetime
    manual: bool = False


def paused(timer: Timer, *, now: datetime) -> Timer:
    """The timer at rest; itself when it is already. A firing in hand can no longer be written down."""
    _require_unfinished(timer)
    if timer.paused:
        return timer
    return replace(
        timer,
        paused=True,
        sleep_until=None,
        fence=timer.fence + 1,
        version=timer.version + 1,
        update_time=now,
    )


def resumed(timer: Timer, *, now: datetime) -> Timer:
    """The timer going again, with the occurrence that it had; itself when it is going already."""
    _require_unfinished(timer)
    if timer.state is TimerState.ACTIVE:
        return timer
    if timer.unreadable:
        raise Refused("TIMER_FAULTY", timer.unreadable, metadata={"timer_id": timer.id})
    return replace(
        timer,
        paused=False,
        sleep_until=timer.due_time,
        fence=timer.fence + 1,
        version=timer.version + 1,
        update_time=now,
    )


def rescheduled(timer: Timer, law: Zone, zone: Zone, *, now: datetime) -> Timer:
    """The timer with the occurrence in hand at its nominal local time under another law than that of its `due_time`.

    `law` is the zone as it was when `due_time` was computed, `zone` as it is. What the new law jumps over is the next
    one instead; without any the timer is finished.
    """
    if timer.due_time is None:
        return timer
    due = _moved(timer, timer.due_time, law, zone)
    if due is not None and timer.repeat_until is not None and due > timer.repeat_until:
        due = None
    return replace(
        timer,
        zone=zone,
        due_time=due,
        sleep_until=due if timer.state is TimerState.ACTIVE else None,
        fence=timer.fence + 1,
        finish_time=now if due is None else None,
        tzdata_version=tzdata_version(),
    )


def occurrence_key(timer_cron: str, zone: Zone, dst_policy: Dst, due_time: datetime) -> str:
    """Names an occurrence among all of its timer: by its nominal local time, or else by its instant."""
    firing = _firing_at(timer_cron, zone, dst_policy, due_time)
    return firing.key if firing else f"{due_time.replace(tzinfo=None).isoformat()}Z"


def manual_key(request_id: str) -> str:
    return f"manual/{request_id}"


def require_etag(timer: Timer, etag: str) -> None:
    """An empty etag is no precondition."""
    if etag and etag != timer.etag:
        raise Conflict("ETAG_MISMATCH", "the timer has been changed since it was read", metadata={"timer_id": timer.id})


def found(timer: Timer | None, timer_id: str) -> Timer:
    """Another organization's timer and one that never was look the same."""
    if timer is None:
        raise NotFound("TIMER_NOT_FOUND", "there is no such timer", metadata={"timer_id": timer_id})
    return timer


def full(most: int) -> LimitReached:
    return LimitReached(
        "TIMERS_PER_ORGANIZATION",
        f"an organization has {most} timers at most that have not fired for the last time",
        metadata={"limit": str(most)},
    )


def taken(timer_id: str) -> AlreadyExists:
    return AlreadyExists("TIMER_EXISTS", "a timer with this id exists", metadata={"timer_id": timer_id})


def _require_unfinished(timer: Timer) -> None:
    if timer.state is TimerState.FINISHED:
        raise Refused("TIMER_FINISHED", "the timer has fired for the last time", metadata={"timer_id": timer.id})


def _firing_at(cron: str, zone: Zone, dst: Dst, instant: datetime) -> Firing | None:
    """None also for what fires once and for `@every`, whose firings no clock on the wall decides."""
    if not cron or not _is_readable(cron) or _parsed(cron).every is not None:
        return None
    firing = next(firings(_parsed(cron), zone, after=instant - datetime.resolution, dst=dst), None)
    return firing if firing and firing.instant == instant else None


def _is_readable(cron: str) -> bool:
    """An expression of another release may not be: the engine puts its timer to rest, others must not stumble on it."""
    try:
        return bool(_parsed(cron))
    except InvalidCron:
        return False


def _moved(timer: Timer, due: datetime, law: Zone, zone: Zone) -> datetime | None:
    before = _firing_at(timer.cron, law, timer.dst_policy, due)
    if before is None or law == zone:
        return due
    # No two laws are more than a day apart, but for those of islands that changed sides of the date line.
    around = firings(_parsed(timer.cron), zone, after=due - 2 * DAY, dst=timer.dst_policy)
    later = None
    for firing in around:
        if firing.key == before.key:
            return firing.instant
        if firing.nominal > before.nominal and later is None:
            later = firing.instant
        if firing.instant > due + 2 * DAY:
            break
    return later


@lru_cache(maxsize=4096)
def _parsed(cron: str) -> Cron:
    return parse_cron(cron)
