"""The safe modes of this database: at most one is active."""

from collections.abc import Mapping
from datetime import datetime

from publisher_service.adapters.postgres.marks import cover_marks
from publisher_service.domain.mark import Mark
from publisher_service.domain.safe_mode import SafeMode, SafeModeReason, Step
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Session, Statement

_COLUMNS = """
    number, active, reason, enter_time, restored_time, mark_time, leave_time, left_by, step, place, untouched
"""

# Two processes that notice at once: the second waits, and finds what the first has stored.
_LOCK = Statement("lock table safe_mode in share row exclusive mode")
_ACTIVE = Statement(f"select {_COLUMNS} from safe_mode where active")
_NEWEST = Statement(f"select {_COLUMNS} from safe_mode order by number desc limit 1")
# The last time that the copy has. Processes that have worked on it since have kept what it was when they began.
_RESTORED_TIME = Statement("""
    select coalesce(
        (select min(coalesce(previous_time, time)) from claim_mark where :is_in_use and time > :alive),
        (select max(time) from claim_mark)
    )
""")
_ENTER = Statement("""
    insert into safe_mode (number, active, reason, enter_time, restored_time, mark_time, step)
    select coalesce(max(number), 0) + 1, true, :reason, :now, :restored_time, :mark_time, :step from safe_mode
""")
_GROW = Statement("""
    update safe_mode set mark_time = greatest(mark_time, :mark_time), step = :step, place = '' where active
""")

_ADVANCE = Statement("""
    update safe_mode set step = :step, place = :place where number = :number and active and (step, place) = (:was, :at)
""")
_SET_UNTOUCHED = Statement("update safe_mode set untouched = :untouched where number = :number")
_LEAVE = Statement("""
    update safe_mode set active = false, leave_time = :now, left_by = :operator where number = :number
""")


async def enter(
    tx: Transaction, reason: SafeModeReason, marks: Mapping[str, Mark], *, alive: datetime, now: datetime
) -> SafeMode | None:
    """Enters the safe mode, or has the active one reconcile up to newer marks. Returns it if it is new.

    `alive`: processes that have counted since then are at work on this database. For `COMMAND_AHEAD` they have been
    before anything was noticed; for `MARK_AHEAD` none has.
    """
    await tx.execute(_LOCK)
    mark_time = max((mark.time for mark in marks.values()), default=None)
    active = await active_safe_mode(tx)
    if active is None:
        is_in_use = reason is SafeModeReason.COMMAND_AHEAD
        restored_time = await tx.fetch_value(_RESTORED_TIME, {"is_in_use": is_in_use, "alive": alive})
        entered = {"reason": reason, "restored_time": restored_time, "mark_time": mark_time}
        await tx.execute(_ENTER, entered | {"now": now, "step": Step.EVENTS})
    elif reason is SafeModeReason.MARK_AHEAD:
        await tx.execute(_GROW, {"mark_time": mark_time, "step": Step.EVENTS})
    await cover_marks(tx, marks)
    return None if active else await active_safe_mode(tx)


async def active_safe_mode(session: Session) -> SafeMode | None:
    row = await session.fetch_row(_ACTIVE)
    return _safe_mode(row) if row else None


async def newest_safe_mode(session: Session) -> SafeMode | None:
    row = await session.fetch_row(_NEWEST)
    return _safe_mode(row) if row else None


async def advance(session: Session, mode: SafeMode, step: Step, place: str = "") -> bool:
    """Notes where the reconciliation goes on. Returns False if another process has come further."""
    names = {"number": mode.number, "step": step, "place": place, "was": mode.step, "at": mode.place}
    return await session.execute(_ADVANCE, names) > 0


async def set_untouched(session: Session, mode: SafeMode, untouched: int) -> None:
    await session.execute(_SET_UNTOUCHED, {"number": mode.number, "untouched": untouched})


async def leave(session: Session, mode: SafeMode, operator: str, *, now: datetime) -> None:
    await session.execute(_LEAVE, {"number": mode.number, "operator": operator, "now": now})


async def lock_safe_modes(session: Session) -> None:
    """Waits for others that enter or leave; until the end of the transaction nobody else does."""
    await session.execute(_LOCK)


def _safe_mode(row: Row) -> SafeMode:
    return SafeMode(
        number=row.number,
        active=row.active,
        reason=row.reason,
        enter_time=row.enter_time,
        restored_time=row.restored_time,
        mark_time=row.mark_time,
        leave_time=row.leave_time,
        left_by=row.left_by,
        step=Step(row.step),
        place=row.place,
        untouched=row.untouched,
    )
