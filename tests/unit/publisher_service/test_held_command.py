"""A held command: the reply that the stream gets, and that its place is free afterwards."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from publisher_service.engine.held_command import HeldCommand
from tests.unit.publisher_service.engine_parts import RecordingDelivery
from tests.unit.publisher_service.post_jobs import command

SECOND = timedelta(seconds=1)


async def test_a_done_command_is_acknowledged_and_a_waiting_one_returned() -> None:
    delivery, released = RecordingDelivery(), list[HeldCommand]()
    held = HeldCommand(command=command("slot-1"), since=0, delivery=cast(Any, delivery), on_release=released.append)
    await held.done()
    await held.retry_in(SECOND)
    assert delivery.replies == ["ack", SECOND]
    assert released == [held, held]


async def test_a_command_from_the_database_is_released_without_a_reply() -> None:
    released = list[HeldCommand]()
    held = HeldCommand(command=command("slot-1"), since=0, on_release=released.append)
    await held.done()
    await held.retry_in(SECOND)
    assert released == [held, held]


def test_copies_of_a_command_have_the_same_key() -> None:
    """A copy has another `emission`; another revision of the slot is another command."""
    first = HeldCommand(command=command("slot-1"), since=0)
    assert HeldCommand(command=replace(first.command, emission=2), since=1).key == first.key
    assert HeldCommand(command=replace(first.command, slot_revision=2), since=1).key != first.key
