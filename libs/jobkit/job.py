"""A job as its row says it, the lock on it, and what a run makes of it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from civil.cron import Dst

JobId: TypeAlias = Hashable


class Misfire(StrEnum):
    """What becomes of occurrences that passed while no worker could run them."""

    FIRE_ONCE = "FIRE_ONCE"
    """One run for all of them, then the next one to come."""
    SKIP = "SKIP"
    """No run for one that is later than `misfire_after`."""
    FIRE_ALL = "FIRE_ALL"
    """Each of them, in order, at least `pace` apart."""


class Lock(NamedTuple):
    """The right to write to a job: until somebody else, who locks it or changes it, makes the row's fence grow."""

    id: JobId
    fence: int
    definition: Hashable = None
    """A result is written if the row still has this definition; None: whatever it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Texts are what the row holds, unchecked: a row that makes no sense is found when its turn comes."""

    id: JobId
    due_time: datetime | None
    """The nominal instant of the occurrence in hand; of a row without one, `sleep_until`. None: finished."""
    sleep_until: datetime | None
    """When the row is looked at next: the due time, the end of a lock, of a back-off, of a pause between two late ones.
    None: finished or paused. In what `lock_next` returns it is what stood there before the lock."""
    fence: int = 0
    attempts: int | None = 0
    """Of the occurrence in hand, the one that `lock_next` begins included. None: the table does not count them."""
    interval: str = ""
    """A cron expression; empty: a one-time job."""
    time_zone: str = "UTC"
    """Where the expression is read, unless it says so itself (`CRON_TZ=`)."""
    dst: str = Dst.CRON
    repeat_until: datetime | None = None
    """No occurrence after this instant."""
    misfire: str = Misfire.FIRE_ONCE
    misfire_after: timedelta | None = None
    """None: as the scheduler is configured."""
    pace: timedelta | None = None
    """None: as the scheduler is configured."""
    auto_remove: bool = False
    """Deleted after its last successful run, instead of kept as finished."""
    last_error: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    flaw: str | None = None
    """Why a store could not read the row: it is paused like any other that makes no sense, instead of run."""

    definition: Hashable = field(default=None, compare=False, repr=False)
    """What a store has to recognise a definition by: that the row still says what the next time is computed from."""
    is_rescheduled: bool = field(default=False, compare=False, repr=False)
    """Its row got another schedule during its run: no policy catches up with the time before the run."""

    @property
    def lock(self) -> Lock:
        return Lock(self.id, self.fence, self.definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUpdate:
    """What is written when a lock ends: all of it, always."""

    due_time: datetime | None
    sleep_until: datetime | None
    attempts: int | None
    last_error: str | None
    finish_time: datetime | None = None
    """Set when there is no occurrence left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The run did what the job is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It did not. `after` overrides the back-off; without `retry` this was the last attempt."""

    error: Exception
    retry: bool = True
    after: timedelta | None = None


Outcome: TypeAlias = Done | Failed
