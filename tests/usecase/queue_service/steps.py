"""Steps that tests of several use cases share."""

from datetime import timedelta
from typing import TYPE_CHECKING

from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position
from queue_service.domain.policy import Policy
from queue_service.wire.slots import queue_slot
from testkit.clocks import START

LEAD = Policy().lead
DUE = START + timedelta(minutes=10)

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


async def drain(queue: "Queue") -> int:
    """Dispatches all that is due. Returns the number of steps that had something to do."""
    steps = 0
    while await queue.hand_over.dispatch():
        steps += 1
    return steps


async def send_and_end(queue: "Queue", *ends: JobState) -> None:
    """Sends draft d1 now, and ends its targets, in the order of their channels, in these states."""
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    commands = sorted(queue.stream.taken(), key=lambda each: each.channel)
    pairs = zip(commands, ends, strict=True)
    await queue.settle(*(queue.report(command, end, 3) for command, end in pairs))


async def slots_of(queue: "Queue", draft_id: str = "d1") -> list[QueueSlot]:
    page = await queue.list(Filter(organization_id="acme", draft_id=draft_id), after=Position(), size=9)
    return [queue_slot(slot) for slot in page.slots]


def channels(slot: QueueSlot) -> list[str]:
    return [each.target.channel for each in slot.targets]
