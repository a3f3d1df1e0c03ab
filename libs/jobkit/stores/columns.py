"""The names of the columns of a table of jobs."""

from dataclasses import dataclass, fields

_LONGEST = 63  # bytes of an identifier in PostgreSQL; it cuts off what is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlColumns:
    """The column of each part of a job. None: the table has no such column, and all jobs have the default of `Job`.

    `id` is unique, and all times are timestamptz.
    """

    id: str = "id"
    sleep_until: str = "sleep_until"
    due_time: str = "due_time"
    fence: str = "fence"
    """bigint, not null."""
    attempts: str | None = "attempts"
    """integer, not null. Without it a failed run is not retried."""
    interval: str | None = "interval"
    time_zone: str | None = "time_zone"
    dst: str | None = "dst"
    repeat_until: str | None = "repeat_until"
    misfire: str | None = "misfire"
    misfire_after: str | None = "misfire_after"
    """interval"""
    pace: str | None = "pace"
    """interval"""
    auto_remove: str | None = "auto_remove"
    last_error: str | None = "last_error"
    finish_time: str | None = "finish_time"
    """Written only: when the job finished."""
    locked_by: str | None = "locked_by"
    """text; written only: the process that has locked the job, or null."""
    data: str | tuple[str, ...] | None = "data"
    """One jsonb column that holds an object, or several columns of any type, which `Job.data` holds by name."""

    @classmethod
    def minimal(
        cls,
        *,
        id: str = "id",  # noqa: A002 - the name of the column
        sleep_until: str = "sleep_until",
        due_time: str = "due_time",
        fence: str = "fence",
        interval: str | None = "interval",
        data: str | tuple[str, ...] | None = None,
    ) -> "SqlColumns":
        """Describes a table that has only these columns."""
        return cls(
            id=id,
            sleep_until=sleep_until,
            due_time=due_time,
            fence=fence,
            interval=interval,
            attempts=None,
            time_zone=None,
            dst=None,
            repeat_until=None,
            misfire=None,
            misfire_after=None,
            pace=None,
            auto_remove=None,
            last_error=None,
            finish_time=None,
            locked_by=None,
            data=data,
        )

    def __post_init__(self) -> None:
        for name in self.names:
            quote(name)
        own = self._own_names
        if len(set(own)) != len(own):
            raise ValueError(f"two parts of a job in one column: {', '.join(sorted(own))}")

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._own_names, *self.data_names)

    @property
    def times(self) -> tuple[str, ...]:
        parts = (self.sleep_until, self.due_time, self.repeat_until, self.finish_time)
        return tuple(name for name in parts if name is not None)

    @property
    def data_names(self) -> tuple[str, ...]:
        return () if self.data is None else (self.data,) if isinstance(self.data, str) else self.data

    @property
    def _own_names(self) -> tuple[str, ...]:
        parts = (getattr(self, part.name) for part in fields(self) if part.name != "data")
        return tuple(name for name in parts if name is not None)


def quote(identifier: str) -> str:
    """Quotes an identifier for SQL; its case is kept."""
    if not 0 < len(identifier.encode()) <= _LONGEST or "\0" in identifier:
        raise ValueError(f"not an identifier of 1 to {_LONGEST} bytes: {identifier!r}")
    # A colon would begin a bind parameter.
    return '"' + identifier.replace('"', '""').replace(":", "\\:") + '"'
