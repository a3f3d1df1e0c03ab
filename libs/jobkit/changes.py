"""What programs ask of a table of jobs: a new job, and changes of one that is there."""

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
"""What decides when a job runs next, and whether it is kept."""


class OnConflict(StrEnum):
    """What `enqueue` does when there is a job with that id."""

    REFUSE = "REFUSE"
    """Raises JobExists."""
    KEEP = "KEEP"
    """Leaves it as it is."""
    EDIT = "EDIT"
    """Changes it to what is given, as `edit_job` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be. Each part means what it does in `Job`."""

    id: JobId | None = None
    """None: the table gives one."""
    due_time: datetime | None = None
    """None: at once, and of a recurring job its first occurrence from now on."""
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
    """Changes of a job. What is left out stays as it is."""

    interval: str | Unset = UNSET
    time_zone: str | Unset = UNSET
    dst: str | Unset = UNSET
    repeat_until: datetime | Unset | None = UNSET
    misfire: str | Unset = UNSET
    misfire_after: timedelta | Unset | None = UNSET
    pace: timedelta | Unset | None = UNSET
    auto_remove: bool | Unset = UNSET
    data: Mapping[str, Any] | Unset = UNSET
    """All of it; where data has columns of its own, those that are named."""
    due_time: datetime | Unset = UNSET
    """Moves the job: it runs then, and a recurring one goes on from there."""
    paused: bool | Unset = UNSET
    """True: it does not run until it is resumed. False: it runs at its due time, or at once if that has passed."""
    end_run: bool = False
    """A run in hand is cancelled, and its result refused."""

    @property
    def given(self) -> dict[str, Any]:
        """The parts of a definition, and data, that are named."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if name in _WRITTEN and value is not UNSET}


_WRITTEN = {*DEFINITION, "data"}
