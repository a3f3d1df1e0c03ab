"""The SQL of the scheduler's calls on a table of jobs.

The texts are written for the planner:

- Instants are parameters, so that due rows are a range of the index on (sleep_until, id) and future rows cost nothing.
- Rows are updated by key from an unnested array. `any(array[...])` allows an index look-up but neither a merge nor a
  hash join, which the planner would prefer while the table is small.
- "is true" hides a condition from the planner, which might otherwise search all due rows a second time.
- The limit is part of the text: a plan for an unknown limit expects a tenth of the table.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, TextClause, bindparam, text

from jobkit.stores.columns import SqlColumns, quote

_OWN_PARAMETERS = frozenset(
    {
        "now",
        "lock_until",
        "owner",
        "ids",
        "fences",
        "definitions",
        "sleep_until",
        "due_time",
        "attempts",
        "last_error",
        "finish_time",
    }
)
_WRITTEN = {
    "sleep_until": "timestamptz",
    "due_time": "timestamptz",
    "attempts": "integer",
    "last_error": "text",
    "finish_time": "timestamptz",
}
_LIMITS = {
    "timestamptz": ("0001-01-02 UTC", "9999-12-30 UTC"),
    "interval": ("-365000 days", "365000 days"),
}
"""The limits of a `datetime`, with a day to spare for zones; and a thousand years, which can still be added to one."""
_TYPES_WITH_LIMITS = {
    "due_time": "timestamptz",
    "repeat_until": "timestamptz",
    "misfire_after": "interval",
    "pace": "interval",
}
_DEFINITIONS, _DEFINITION_NAME = ", cast(:definitions as text[])", ", jobkit_definition"
_MOST_ATTEMPTS = 2**31 - 2
_DEFINITION = {
    "interval": "",
    "time_zone": "",
    "dst": "",
    "repeat_until": "epoch",
    "misfire": "",
    "misfire_after": "epoch",
    "pace": "epoch",
    "auto_remove": "",
}
"""The parts of a definition. Times are compared as numbers: their text depends on the settings of a connection."""
_READ = (
    "id",
    "due_time",
    "fence",
    "attempts",
    "interval",
    "time_zone",
    "dst",
    "repeat_until",
    "misfire",
    "misfire_after",
    "pace",
    "auto_remove",
    "last_error",
)


class Statements:
    def __init__(
        self,
        table: str,
        schema: str | None,
        columns: SqlColumns,
        condition: str,
        parameters: Mapping[str, object],
    ) -> None:
        if taken := _OWN_PARAMETERS & set(parameters):
            raise ValueError(f"parameters that the statements use themselves: {', '.join(sorted(taken))}")
        self._table = quote(table)
        self.source = self._table if schema is None else f"{quote(schema)}.{self._table}"
        self.relation = self.source.replace("\\:", ":")
        self._columns = columns
        self._condition = condition
        self._binds: list[BindParameter[Any]] = [bindparam(name, value) for name, value in parameters.items()]
        self.written = [
            (part, quote(name), kind) for part, kind in _WRITTEN.items() if (name := getattr(columns, part)) is not None
        ]
        self._id, self._fence = quote(columns.id), quote(columns.fence)
        self._sleep_until, self._due_time = quote(columns.sleep_until), quote(columns.due_time)
        self.lock_next = lru_cache(maxsize=16)(self._lock_next)
        self.update = lru_cache(maxsize=1)(self._update)
        self.remove = lru_cache(maxsize=1)(self._remove)
        self.extend = lru_cache(maxsize=1)(self._extend)
        self.hold = lru_cache(maxsize=1)(self._hold)
        self.held = lru_cache(maxsize=1)(self._held)
        self.next_due = self._conditional(f"""
            select {_readable(self._sleep_until)} from {self.source}
            where {self._sleep_until} is not null and ({condition})
            order by {self._table}.{self._sleep_until} limit 1
        """)

    def _lock_next(self, limit: int, data_is_json: bool) -> TextClause:
        table = self._table
        also = f", {quote(self._columns.attempts)} = {self._attempts} + 1" if self._columns.attempts else ""
        also += f", {quote(self._columns.locked_by)} = :owner" if self._columns.locked_by else ""
        return self._conditional(f"""
            with due as materialized (
                select {self._id} as jobkit_id, {self._sleep_until} as jobkit_slept_until
                from {self.source}
                where {self._sleep_until} <= :now and ({self._condition})
                order by {self._sleep_until}, {self._id}
                limit {limit:d}
                for update skip locked
            ),
            locked as (
                update {self.source} set
                    {self._sleep_until} = :lock_until,
                    {self._due_time} = coalesce({table}.{self._due_time}, {table}.{self._sleep_until}),
                    {self._fence} = coalesce({table}.{self._fence}, 0) + 1{also}
                from due
                where {table}.{self._id} = any(array[due.jobkit_id])
                    and ({table}.{self._sleep_until} <= :now) is true and ({self._condition}) is true
                returning {_readable("due.jobkit_slept_until")} as slept_until, {self._read(data_is_json)}
            )
            select * from locked order by slept_until, id
        """)

    def _read(self, data_is_json: bool) -> str:
        own = [f"{self._own(part)} as {part}" for part in _READ]
        columns = [f"{self._table}.{quote(name)}" for name in self._columns.data_names]
        # Drivers decode JSON differently.
        read = [f"cast({column} as text)" for column in columns] if data_is_json else columns
        data = [f"{column} as jobkit_data_{number}" for number, column in enumerate(read)]
        return ", ".join([*own, f"{self._definition} as definition", *data])

    @property
    def _definition(self) -> str:
        """Returns the SQL of a text that changes with each part from which the next due time is computed."""
        parts = {part: name for part in _DEFINITION if (name := getattr(self._columns, part)) is not None}
        values = {part: f"{self._table}.{quote(name)}" for part, name in parts.items()}
        read = [
            f"extract({how} from {values[part]})" if how else values[part]
            for part, how in _DEFINITION.items()
            if part in values
        ]
        return f"cast(row({', '.join(read)}) as text)" if read else "cast('' as text)"

    def _own(self, part: str) -> str:
        name = getattr(self._columns, part)
        return "null" if name is None else _readable(f"{self._table}.{quote(name)}", _TYPES_WITH_LIMITS.get(part))

    @property
    def _attempts(self) -> str:
        """Returns the SQL of the attempts so far, also for a null and for the largest integer."""
        assert self._columns.attempts is not None
        return f"least(coalesce({self._table}.{quote(self._columns.attempts)}, 0), {_MOST_ATTEMPTS})"

    def _update(self, id_type: str) -> TextClause:
        written = ", ".join(f"{column} = c.jobkit_{part}" for part, column, _ in self.written)
        arrays = "".join(f", cast(:{part} as {kind}[])" for part, _, kind in self.written)
        names = "".join(f", jobkit_{part}" for part, _, _ in self.written)
        return text(
            f"update {self.source} set {written}, {self._fence} = c.jobkit_fence + 1{self.unlocked}"
            f" from {self._changes(id_type, _DEFINITIONS + arrays, _DEFINITION_NAME + names)}"
            f" where {self._is_held} and {self._is_unchanged} returning c.jobkit_ordinal"
        )

    def _remove(self, id_type: str) -> TextClause:
        return text(
            f"delete from {self.source} using {self._changes(id_type, _DEFINITIONS, _DEFINITION_NAME)}"
            f" where {self._is_held} and {self._is_unchanged} returning c.jobkit_ordinal"
        )

    def _extend(self, id_type: str) -> TextClause:
        # Does not wait for a row that another transaction has locked (an editor's, or a handler's by `hold`): no other
        # worker takes it meanwhile, and waiting would let all the other locks expire.
        free = f"select from {self.source} where {self._is_held} for update skip locked"
        return text(f"""
            with extended as (
                update {self.source} set {self._sleep_until} = :lock_until
                from (select c.* from {self._changes(id_type)} cross join lateral ({free}) as free) as c
                where {self._is_held}
            )
            select c.jobkit_ordinal from {self._changes(id_type)}
            cross join lateral (select from {self.source} where {self._is_held}) as held
        """)

    def _hold(self, id_type: str) -> TextClause:
        return text(
            f"select c.jobkit_ordinal from (select * from {self._changes(id_type)} order by jobkit_id) as c"
            f" cross join lateral (select from {self.source} where {self._is_held} for update) as held"
        )

    def _held(self, id_type: str, data_is_json: bool) -> TextClause:
        return text(
            f"select {self.read_row(data_is_json)} from {self.source}"
            f" cross join {self._changes(id_type)} where {self._is_held}"
        )

    def _changes(self, id_type: str, arrays: str = "", names: str = "") -> str:
        return (
            f"unnest(cast(:ids as {id_type}[]), cast(:fences as bigint[]){arrays}) with ordinality"
            f" as c (jobkit_id, jobkit_fence{names}, jobkit_ordinal)"
        )

    def read_row(self, data_is_json: bool) -> str:
        return f"{_readable(self._sleep_until)} as slept_until, {self._read(data_is_json)}"

    @property
    def is_as_read(self) -> str:
        """Returns the SQL condition that nobody has locked, moved or paused the row since it was read."""
        is_asleep = f"{_readable(self._sleep_until)} is not distinct from cast(:read_sleep_until as timestamptz)"
        return f"coalesce({self._fence}, 0) = cast(:read_fence as bigint) and {is_asleep}"

    @property
    def unlocked(self) -> str:
        return f", {quote(self._columns.locked_by)} = null" if self._columns.locked_by else ""

    @property
    def _is_unchanged(self) -> str:
        return f"(c.jobkit_definition is null or {self._definition} = c.jobkit_definition)"

    @property
    def _is_held(self) -> str:
        return f"{self._table}.{self._id} = any(array[c.jobkit_id]) and {self._table}.{self._fence} = c.jobkit_fence"

    def _conditional(self, statement: str) -> TextClause:
        return text(statement).bindparams(*self._binds)


def _readable(column: str, kind: str | None = "timestamptz") -> str:
    """Clamps a value to what drivers can read: a single value beyond would fail the whole batch."""
    if kind is None:
        return column
    least, most = (f"{kind} '{limit}'" for limit in _LIMITS[kind])
    return f"case when {column} < {least} then {least} when {column} > {most} then {most} else {column} end"
