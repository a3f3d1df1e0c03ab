"""One command on its way: the answer that the stream gets, and that its place is free afterwards."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from publisher_service.engine.work import Work
from tests.unit.publisher_service.post_jobs import command

SECOND = timedelta(seconds=1)


class RecordingDelivery:
    """Notes the answers to one message."""

    def __init__(self) -> None:
        self.answers: list[object] = []

    async def ack(self) -> None:
        self.answers.append("ack")

    async def retry_in(self, delay: timedelta) -> None:
        self.answers.append(delay)


async def test_a_finished_command_is_acknowledged_and_a_waiting_one_retried() -> None:
    delivery, left = RecordingDelivery(), list[Work]()
    work = Work(command=command("slot-1"), since=0, delivery=cast(Any, delivery), left=left.append)
    await work.over()
    await work.again(SECOND)
    assert delivery.answers == ["ack", SECOND]
    assert left == [work, work]


async def test_a_command_from_the_database_has_nobody_to_answer() -> None:
    left = list[Work]()
    work = Work(command=command("slot-1"), since=0, left=left.append)
    await work.over()
    await work.again(SECOND)
    assert left == [work, work]


def test_copies_of_a_command_are_the_same_work() -> None:
    """A copy has a higher number of its emission, and the slot, its revision and the target of the first."""
    first = Work(command=command("slot-1"), since=0)
    assert Work(command=replace(first.command, emission=2), since=1).wish == first.wish
    assert Work(command=replace(first.command, slot_revision=2), since=1).wish != first.wish
