"""Plans, as callers ask for them and as they are answered."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from civil.weekly import WeeklySlot
from civil.zones import UnknownZone, find_zone
from postflow.queue.v1 import queue_service_pb2
from queue_service.domain.planned_change import (
    PlannedAdditions,
    PlannedChange,
    PlannedClearing,
    PlannedInFront,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedSchedule,
    PlannedShuffle,
)
from queue_service.domain.planning import Plan, PlannedSlot
from queue_service.wire.choices import nothing_chosen
from queue_service.wire.pauses import overdue_policy
from queue_service.wire.rearrangements import destination, order
from queue_service.wire.schedules import weekly_slot
from queue_service.wire.slots import is_in_front
from servicekit.faults import InvalidField
from servicekit.timestamps import moment, timestamp

_ENCODED_AT_ONCE = 500
"""A thousand take milliseconds, in which other posts may become due."""

_Request = queue_service_pb2.PlanQueueRequest


def planned_change(request: _Request) -> PlannedChange:
    kind = request.WhichOneof("change")
    if kind is None or (kind == "clear" and not request.clear):
        raise nothing_chosen(request, "change")
    with fields_of(request):
        return _CHANGES[kind](request)


@contextmanager
def fields_of(request: _Request) -> Iterator[None]:
    """Names invalid fields of a change as the request does."""
    try:
        yield
    except InvalidField as invalid:
        [violation] = invalid.violations
        field = f"{request.WhichOneof('change')}.{violation.field}"
        raise InvalidField(field, violation.description, reason=invalid.reason) from None


async def plan_queue_response(plan: Plan) -> queue_service_pb2.PlanQueueResponse:
    response = queue_service_pb2.PlanQueueResponse(
        unchanged_slots=plan.unchanged, etag=plan.etag, plan_time=timestamp(plan.time)
    )
    for first in range(0, len(plan.slots), _ENCODED_AT_ONCE):
        if first:
            await asyncio.sleep(0)
        response.slots.extend(map(_planned_slot, plan.slots[first : first + _ENCODED_AT_ONCE]))
    return response


def _planned_slot(slot: PlannedSlot) -> queue_service_pb2.PlannedSlot:
    seat = slot.seat
    local = f"{seat.local_date}T{seat.local_time:%H:%M}" if seat and seat.local_date else ""
    return queue_service_pb2.PlannedSlot(
        slot_id=slot.slot_id,
        draft_id=slot.draft_id,
        previous_time=timestamp(slot.previous_time),
        schedule_time=timestamp(seat.time if seat else None),
        local_time=local,
    )


def _additions(request: _Request) -> PlannedAdditions | PlannedInFront:
    kind = PlannedInFront if is_in_front(request.add.place) else PlannedAdditions
    return kind(count=_given(request.add.count, "count"), category=request.add.category_id)


def _given(number: int, field: str) -> int:
    """Returns a number that must not be left out, which the rules of the fields allow."""
    if not number:
        raise InvalidField(field, "is required")
    return number


def _schedule(request: _Request) -> PlannedSchedule:
    asked = request.schedule
    slots: dict[WeeklySlot, str] = {}
    for place, each in enumerate(asked.weekly_slots):
        slot = weekly_slot(each)
        if slot in slots:
            raise InvalidField(f"weekly_slots[{place}]", f"is the same as weekly_slots[{list(slots).index(slot)}]")
        slots[slot] = each.category_id
    return PlannedSchedule(
        weekly_slots=slots or None,
        time_zone=_zone(asked.time_zone) if asked.time_zone else None,
        max_posts_per_day=asked.max_posts_per_day if asked.HasField("max_posts_per_day") else None,
    )


def _zone(name: str) -> str:
    try:
        return find_zone(name).name
    except UnknownZone as unknown:
        raise InvalidField("time_zone", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def _pause(request: _Request) -> PlannedPause:
    return PlannedPause(until=moment(request.pause.until), overdue=overdue_policy(request.pause.overdue))


_CHANGES: dict[str, Callable[[_Request], PlannedChange]] = {
    "add": _additions,
    "schedule": _schedule,
    "reorder": lambda request: order(request.reorder),
    "clear": lambda _: PlannedClearing(),
    "shuffle": lambda request: PlannedShuffle(seed=_given(request.shuffle.seed, "seed")),
    "pause": _pause,
    "resume": lambda request: PlannedResumption(overdue=overdue_policy(request.resume)),
    "remove": lambda request: PlannedRemoval(slot_id=request.remove.slot_id, close_gap=request.remove.close_gap),
    "move": lambda request: PlannedMove(slot_id=request.move.slot_id, destination=destination(request.move)),
}
