"""A job as its row describes it, the lock on it, and the outcomes of a run."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from civil.cron import Dst

JobId: TypeAlias = Hashable


class Misfire(StrEnum):
    """The policy for occurrences that passed while no worker could run them."""

    FIRE_ONCE = "FIRE_ONCE"
    """Runs once for all of them, then goes on with the next occurrence."""
    SKIP = "SKIP"
    """Skips each occurrence that is later than `misfire_after`."""
    FIRE_ALL = "FIRE_ALL"
    """Runs each of them, in order, at least `pace` apart."""


class Lock(NamedTuple):
    """The right to write to a job. It holds until another worker or an edit increases the row's fence."""

    id: JobId
    fence: int
    definition: Hashable = None
    """If set, a result is written only while the row has this definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row. Its texts are not validated: a row with an invalid value is found, and paused, when it is due."""

    id: JobId
    due_time: datetime | None
    """The nominal time of the current occurrence; `sleep_until` in a row that has none. None: the job is finished."""
    sleep_until: datetime | None
    """When a scheduler looks at the row next: the due time, or the end of a lock, a back-off or a pace.

    None: the job is finished or paused. `lock_next` returns the value from before the lock.
    """
    fence: int = 0
    attempts: int | None = 0
    """Attempts at the current occurrence, including the one that `lock_next` begins. None: the table has no count."""
    interval: str = ""
    """A cron expression; empty for a one-time job."""
    time_zone: str = "UTC"
    """The zone in which the expression is read, unless the expression names one (`CRON_TZ=`)."""
    dst: str = Dst.CRON
    repeat_until: datetime | None = None
    """No occurrence after this instant runs."""
    misfire: str = Misfire.FIRE_ONCE
    misfire_after: timedelta | None = None
    """None: the scheduler's `Config.misfire_after`."""
    pace: timedelta | None = None
    """None: the scheduler's `Config.pace`."""
    auto_remove: bool = False
    """Deletes the job after its last successful run, instead of keeping it as finished."""
    last_error: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    flaw: str | None = None
    """Why the store could not read the row. Such a job is paused instead of run."""

    definition: Hashable = field(default=None, compare=False, repr=False)
    """A value that the store changes whenever one of the parts changes from which the next due time is computed."""
    is_rescheduled: bool = field(default=False, compare=False, repr=False)
    """Whether the row got another schedule during the run, so that FIRE_ALL does not catch up with times before it."""

    @property
    def lock(self) -> Lock:
        return Lock(self.id, self.fence, self.definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUpdate:
    """All values that are written when a lock ends."""

    due_time: datetime | None
    sleep_until: datetime | None
    attempts: int | None
    last_error: str | None
    finish_time: datetime | None = None
    """Set when the job has no occurrence left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The run succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed. `after` overrides the back-off; `retry=False` makes this the last attempt."""

    error: Exception
    retry: bool = True
    after: timedelta | None = None


Outcome: TypeAlias = Done | Failed
