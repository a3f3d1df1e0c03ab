"""Marks in the database, and what each claim asks of them: whether this database is the one that the marks know."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from publisher_service.domain.mark import Mark
from servicekit.pg.session import Session, Statement

# Conditions about no row of a query: PostgreSQL evaluates each of them once.
IS_OLDER: Final = """exists (
    select from unnest(cast(:mark_processes as text[]), cast(:mark_numbers as bigint[])) as mark (process, number)
    where not exists (
        select from claim_mark known where known.process = mark.process and known.number >= mark.number
    )
)"""
IN_SAFE_MODE: Final = "exists (select from safe_mode where active)"

# The row is counted up under its lock: a snapshot with this number has all that this process has committed before it.
COUNT_UP: Final = """
    on conflict (process) do update set number = known.number + 1, time = excluded.time
    returning number
"""

_BEAT = Statement(f"""
    with looked as materialized (select {IS_OLDER} as is_older),
    beaten as (
        insert into claim_mark as known (process, number, time, previous_time)
        select :process, 1, :now, (select max(time) from claim_mark) from looked where not is_older
        {COUNT_UP}
    )
    select is_older, (select number from beaten), exists (select from claim_mark), is_older or {IN_SAFE_MODE}
    from looked
""")

_COVER = Statement("""
    insert into claim_mark as known (process, number, time)
    select process, number, time
    from unnest(cast(:mark_processes as text[]), cast(:mark_numbers as bigint[]), cast(:mark_times as timestamptz[]))
        as mark (process, number, time)
    order by process
    on conflict (process) do update set number = greatest(known.number, excluded.number)
""")


_IS_FORSAKEN = Statement("select coalesce(max(time) < :alive, false) from claim_mark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beaten:
    """A heartbeat: the new mark, None on an older database; whether any process had left its row before."""

    mark: Mark | None
    is_in_use: bool
    is_safe: bool


def mark_arrays(marks: Mapping[str, Mark]) -> dict[str, list[object]]:
    """Returns the parameters of `IS_OLDER`."""
    return {
        "mark_processes": [mark.process for mark in marks.values()],
        "mark_numbers": [mark.number for mark in marks.values()],
        "mark_times": [mark.time for mark in marks.values()],
    }


async def beat(session: Session, process: str, marks: Mapping[str, Mark], *, now: datetime) -> Beaten:
    """Counts the process's row up, unless the database is older than the marks."""
    row = await session.fetch_row(_BEAT, {"process": process, "now": now, **mark_arrays(marks)})
    assert row is not None
    is_older, number, is_in_use, is_safe = row
    mark = None if is_older else Mark(process=process, number=number, time=now)
    return Beaten(mark=mark, is_in_use=is_in_use, is_safe=is_safe)


async def is_forsaken(session: Session, *, alive: datetime) -> bool:
    """Returns whether processes have worked on the database, but none since then."""
    found: bool = await session.fetch_value(_IS_FORSAKEN, {"alive": alive})
    return found


async def cover_marks(session: Session, marks: Mapping[str, Mark]) -> None:
    """Raises the rows to these marks: from now on they are no longer ahead of the database."""
    await session.execute(_COVER, mark_arrays(marks))
