"""The requests of programs to a table of jobs: a new job, and an edit of an existing one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from civil.cron import Dst
from jobkit.job import JobId, Misfire


class Unset(Enum):
    UNSET = "UNSET"


UNSET = Unset.UNSET
CALENDAR = ("interval", "time_zone", "dst")
DEFINITION = (*CALENDAR, "repeat_until", "misfire", "misfire_after", "pace", "auto_remove")
"""The parts that decide when a job runs next, and whether it is kept when it has ended."""


class OnConflict(StrEnum):
    """The choices of `enqueue` if a job with that id exists."""

    REFUSE = "REFUSE"
    """Raises JobExists."""
    KEEP = "KEEP"
    """Leaves the job unchanged."""
    EDIT = "EDIT"
    """Changes the job to match the new one, as `edit_job` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to insert. Each field has its meaning in `Job`."""

    id: JobId | None = None
    """None: the store assigns one."""
    due_time: datetime | None = None
    """None: now, or for a recurring job its first occurrence from now on."""
    interval: str = ""
    time_zone: str = "UTC"
    dst: str = Dst.CRON
    repeat_until: datetime | None = None
    misfire: str = Misfire.FIRE_ONCE
    misfire_after: timedelta | None = None
    pace: timedelta | None = None
    auto_remove: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


class Enqueued(NamedTuple):
    id: JobId
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEdit:
    """Changes to a job. Fields that are left out stay unchanged."""

    interval: str | Unset = UNSET
    time_zone: str | Unset = UNSET
    dst: str | Unset = UNSET
    repeat_until: datetime | Unset | None = UNSET
    misfire: str | Unset = UNSET
    misfire_after: timedelta | Unset | None = UNSET
    pace: timedelta | Unset | None = UNSET
    auto_remove: bool | Unset = UNSET
    data: Mapping[str, Any] | Unset = UNSET
    """Replaces all data; in a table with several data columns, only those that are named."""
    due_time: datetime | Unset = UNSET
    """Moves the job: it runs at that time, and a recurring one continues from there."""
    paused: bool | Unset = UNSET
    """True: the job does not run until it is resumed. False: it runs at its due time, or at once if that has passed."""
    end_run: bool = False
    """Cancels a current run and refuses its result."""

    @property
    def given(self) -> dict[str, Any]:
        """Returns the fields of the definition, and `data`, that this edit sets."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if name in _WRITTEN and value is not UNSET}


_WRITTEN = {*DEFINITION, "data"}
