"""The SQL that inserts, reads and edits a single row of a table of jobs."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from jobkit.changes import DEFINITION, JobEdit, NewJob
from jobkit.editing import Edited
from jobkit.job import Job
from jobkit.stores.columns import SqlColumns, quote
from jobkit.stores.statements import Statements

Values = dict[str, object]
"""Values by the name of their column."""


class RowStatements:
    def __init__(self, columns: SqlColumns, statements: Statements, types: Mapping[str, str]) -> None:
        """`types` holds the SQL type of each column."""
        self._columns = columns
        self._statements = statements
        self._types = types
        self._is_job = f"{quote(columns.id)} = cast(:job_id as {types[columns.id]})"

    def insert(self, new: NewJob, due: datetime) -> tuple[TextClause, Values]:
        """Returns a statement that answers the id, or no row if a job has that id."""
        values = self._definition({name: getattr(new, name) for name in DEFINITION}) | self._data(new.data)
        values |= {self._columns.due_time: due, self._columns.sleep_until: due}
        if new.id is not None:
            values[self._columns.id] = new.id
        columns, casts, bound = self._bound(values)
        key = quote(self._columns.id)
        statement = (
            f"insert into {self._statements.source} ({', '.join(columns)}) values ({', '.join(casts)})"
            f" on conflict ({key}) do nothing returning {key}"
        )
        return text(statement), bound

    def read(self, data_is_json: bool) -> TextClause:
        return text(
            f"select {self._statements.read_row(data_is_json)} from {self._statements.source} where {self._is_job}"
        )

    def change(self, before: Job, edit: JobEdit, after: Edited, now: datetime) -> tuple[TextClause, Values]:
        """Returns a statement that answers no row, and changes nothing, if the row is not as it was read."""
        given = edit.given
        values = self._definition({name: given[name] for name in DEFINITION if name in given})
        values |= self._data(given["data"]) if "data" in given else {}
        if after.job.fence != before.fence:
            values |= self._moved(before, after, now)
        columns, casts, bound = self._bound(values)
        # An edit without effect locks the row too: in the caller's transaction it stays as it was read.
        key = quote(self._columns.id)
        sets = [f"{column} = {cast}" for column, cast in zip(columns, casts, strict=True)] or [f"{key} = {key}"]
        statement = (
            f"update {self._statements.source} set {', '.join(sets)}"
            f" where {self._is_job} and {self._statements.is_as_read} returning 1"
        )
        unchanged = {"job_id": before.id, "read_fence": before.fence, "read_sleep_until": before.sleep_until}
        return text(statement), bound | unchanged

    def _moved(self, before: Job, after: Edited, now: datetime) -> Values:
        parts: dict[str, object] = {
            "due_time": after.job.due_time,
            "sleep_until": after.job.sleep_until,
            "fence": after.job.fence,
            "attempts": after.job.attempts,
            "locked_by": None,
        }
        if after.job.due_time != before.due_time:
            parts["finish_time"] = now if after.is_finished else None
        return {name: value for part, value in parts.items() if (name := getattr(self._columns, part)) is not None}

    def _definition(self, parts: Mapping[str, object]) -> Values:
        defaults = NewJob()
        values: Values = {}
        for part, value in parts.items():
            column = getattr(self._columns, part)
            if column is not None:
                values[column] = value
            elif value != getattr(defaults, part):
                raise ValueError(f"the table has no column for {part}")
        return values

    def _data(self, data: Mapping[str, Any]) -> Values:
        names = self._columns.data_names
        if isinstance(self._columns.data, str) and self._types[names[0]] in {"json", "jsonb"}:
            return {names[0]: data}
        if unknown := set(data) - set(names):
            raise ValueError(f"the table has no data column named {', '.join(sorted(unknown))}")
        return dict(data)

    def _bound(self, values: Values) -> tuple[list[str], list[str], Values]:
        """Returns the columns, a parameter for each, cast to its type, and the parameters' values."""
        columns = [quote(name) for name in values]
        casts = [f"cast(:value_{number} as {self._types[name]})" for number, name in enumerate(values)]
        return columns, casts, {f"value_{number}": value for number, value in enumerate(self._encoded(values))}

    def _encoded(self, values: Values) -> Iterable[object]:
        for name, value in values.items():
            is_json = self._types[name] in {"json", "jsonb"} and name in self._columns.data_names
            yield json.dumps(value) if is_json else value
