"""Plans of one queue among the fakes of `Queue`."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from queue_service.application.plan_queue import PlanQueue
from queue_service.domain.planned_change import PlannedChange
from queue_service.domain.planning import Plan
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

PAGE = ("acme", "page")
HOUR = timedelta(hours=1)
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]


def planner(queue: "Queue") -> PlanQueue:
    check = AccountCheck(queue.accounts)
    return PlanQueue(
        database=queue.database,
        clock=queue.clock,
        policy=queue.policy,
        accounts=AccountPresence(queue.database, check),
        check_accounts=check,
        read_times=queue.read_times,
        timetables=queue.schedule,
    )


async def plan(queue: "Queue", change: PlannedChange, account: str = "page") -> Plan:
    return await planner(queue)(("acme", account), change)


def hour(number: float) -> datetime:
    return START + number * HOUR


def hours(planned: Plan) -> list[tuple[str, float | None, float | None]]:
    """Returns each slot of a plan as its draft and its hours before and after."""
    return [
        (slot.draft_id, _hour(slot.previous_time), _hour(slot.seat.time if slot.seat else None))
        for slot in planned.slots
    ]


def _hour(time: datetime | None) -> float | None:
    return None if time is None else (time - START) / HOUR
