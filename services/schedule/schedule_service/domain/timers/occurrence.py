"""Occurrences of a timer: their names, and whether they fire."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from civil.cron import Dst
from civil.zones import Zone
from schedule_service.domain.timers.timer import Timer, firing_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """An occurrence that the engine is about to fire."""

    due_time: datetime
    key: str | None  # None: it has fired before
    not_after: datetime | None  # None: it is never too late
    traceparent: str

    def is_too_late(self, now: datetime) -> bool:
        return self.not_after is not None and self.not_after < now


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An occurrence of a timer that has fired."""

    organization_id: str
    timer_id: str
    topic: str
    payload: bytes
    occurrence_key: str
    due_time: datetime
    fire_time: datetime
    manual: bool = False


class ManualFiring(NamedTuple):
    """A timer after a manual firing, and the key of that firing."""

    timer: Timer
    occurrence_key: str


def occurrence_key(timer_cron: str, zone: Zone, dst_policy: Dst, due_time: datetime) -> str:
    """Returns the key of an occurrence, unique for its timer: its nominal local time, or else its instant."""
    firing = firing_at(timer_cron, zone, dst_policy, due_time)
    return firing.key if firing else f"{due_time.replace(tzinfo=None).isoformat()}Z"


def manual_key(request_id: str) -> str:
    return f"manual/{request_id}"
