"""A timer: its current occurrence, and what calls and new time zone data change."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

from civil.cron import Cron, Dst, Firing, InvalidCron, firings, parse_cron
from civil.zones import DAY, Zone, tzdata_version
from servicekit.faults import AlreadyExists, Conflict, LimitReached, NotFound, Refused

KEPT = timedelta(days=7)
"""A timer that has fired for the last time is kept this long."""
MOST_TIMERS = 100_000
"""The limit of an organization. Timers that have fired for the last time do not count."""


class TimerState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    FINISHED = "FINISHED"
    FAULTY = "FAULTY"
    """It came due and could not be read."""


class MisfirePolicy(StrEnum):
    """The rule for times that passed while nothing could fire."""

    FIRE_ONCE = "FIRE_ONCE"
    SKIP = "SKIP"
    FIRE_ALL = "FIRE_ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    organization_id: str
    id: str
    topic: str
    payload: bytes
    fire_time: datetime | None  # set for a timer that fires once; None: `cron` says when
    cron: str  # evaluated in `zone`; it names no zone itself
    zone: Zone
    dst_policy: Dst
    repeat_until: datetime | None
    misfire_policy: MisfirePolicy
    catch_up_interval: timedelta
    skip_after: timedelta
    auto_remove: bool
    paused: bool = False
    due_time: datetime | None  # the current occurrence; None: there are no more
    sleep_until: datetime | None  # when the engine checks it next; None: never
    fence: int = 0  # grows when the engine locks the timer, and when anyone else changes what the engine writes
    fire_count: int = 0
    last_fire_time: datetime | None = None
    last_occurrence_key: str = ""  # of the last scheduled firing; manual ones do not count
    finish_time: datetime | None = None
    tzdata_version: str  # the tzdata release that `due_time` was computed with
    traceparent: str = ""
    version: int = 1  # grows with every change by a call
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
        """The reason why the timer cannot fire, or is FAULTY although it could; empty if nothing is wrong with it."""
        if self.state is TimerState.FINISHED:
            return ""
        if unreadable := self.unreadable:
            return unreadable
        if self.state is TimerState.FAULTY:
            return "could not be read when it came due, but this release can read it: call ResumeTimer to restart it"
        return ""

    @property
    def unreadable(self) -> str:
        """The part of a cron timer that this release cannot read; empty if it can read everything."""
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
        # The creation time distinguishes it from an earlier timer with the same id.
        edition = f"{self.id} {self.create_time.isoformat()} {self.version}"
        return sha256(edition.encode()).hexdigest()[:16]


def paused(timer: Timer, *, now: datetime) -> Timer:
    """Returns the paused timer; the same object if it is paused already. A firing in flight can no longer commit."""
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
    """Returns the active timer at the occurrence where it stopped; the same object if it is active already."""
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


def rescheduled(timer: Timer, old_zone: Zone, zone: Zone, *, now: datetime) -> Timer:
    """Moves the current occurrence to the instant that its nominal local time has in `zone`.

    `old_zone` is the zone as it was when `due_time` was computed. If the local time no longer exists, the next
    occurrence takes its place; if there is none, the timer is finished.
    """
    if timer.due_time is None:
        return timer
    due = _moved(timer, timer.due_time, old_zone, zone)
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


def require_etag(timer: Timer, etag: str) -> None:
    """Raises Conflict if the timer has another etag. An empty etag is no precondition."""
    if etag and etag != timer.etag:
        raise Conflict("ETAG_MISMATCH", "the timer has been changed since it was read", metadata={"timer_id": timer.id})


def found(timer: Timer | None, timer_id: str) -> Timer:
    """Raises NotFound for None. Another organization's timer looks like one that never existed."""
    if timer is None:
        raise NotFound("TIMER_NOT_FOUND", "there is no such timer", metadata={"timer_id": timer_id})
    return timer


def full(most: int) -> LimitReached:
    return LimitReached(
        "TIMERS_PER_ORGANIZATION",
        f"an organization may have at most {most} unfinished timers",
        metadata={"limit": str(most)},
    )


def taken(timer_id: str) -> AlreadyExists:
    return AlreadyExists("TIMER_EXISTS", "a timer with this id exists", metadata={"timer_id": timer_id})


def _require_unfinished(timer: Timer) -> None:
    if timer.state is TimerState.FINISHED:
        raise Refused("TIMER_FINISHED", "the timer has fired for the last time", metadata={"timer_id": timer.id})


def firing_at(cron: str, zone: Zone, dst: Dst, instant: datetime) -> Firing | None:
    """Returns the firing of the expression at this instant.

    None also for a timer that fires once, and for `@every`, which does not depend on wall-clock time.
    """
    if not cron or not _is_readable(cron) or _parsed(cron).every is not None:
        return None
    firing = next(firings(_parsed(cron), zone, after=instant - datetime.resolution, dst=dst), None)
    return firing if firing and firing.instant == instant else None


def _is_readable(cron: str) -> bool:
    """Returns whether this release can read the expression. Another release may have accepted it."""
    try:
        return bool(_parsed(cron))
    except InvalidCron:
        return False


def _moved(timer: Timer, due: datetime, old_zone: Zone, zone: Zone) -> datetime | None:
    before = firing_at(timer.cron, old_zone, timer.dst_policy, due)
    if before is None or old_zone == zone:
        return due
    # Two versions of a zone are at most a day apart, but for islands that moved across the date line.
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
