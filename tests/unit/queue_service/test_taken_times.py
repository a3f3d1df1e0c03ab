"""The times at which a new slot would be too near to a live one."""

from datetime import timedelta

import pytest

from queue_service.domain.account import AccountQueue
from queue_service.domain.booking import Place, book
from queue_service.domain.draft import Draft, Target
from queue_service.domain.slot import BlockingSlot, QueueSlot, SlotOrigin
from queue_service.domain.taken_times import TakenTimes
from testkit.clocks import START

PAGE, OTHER = ("acme", "page"), ("umbrella", "page")
DRAFT = Draft(
    organization_id="acme",
    id="d1",
    revision=1,
    targets=(Target(social_account_id="page", channel="facebook", destination=""),),
)


def added() -> QueueSlot:
    place = Place(
        queue=AccountQueue(social_account_id="page"),
        schedule_time=START,
        origin=SlotOrigin.EXACT,
        tzdata_version="2026a",
    )
    return book(DRAFT, place, slot_id="s1", not_after=START, traceparent="", now=START)


@pytest.mark.parametrize(("seconds", "is_taken"), [(-60, False), (-59.9, True), (0, True), (59.9, True), (60, False)])
def test_a_slot_that_was_added_blocks_its_minute(seconds: float, is_taken: bool) -> None:
    taken = TakenTimes({})
    taken.add([added()])
    blocking = taken.blocking(PAGE, START + timedelta(seconds=seconds))
    assert (blocking and blocking.slot_id) == ("s1" if is_taken else None)


def test_the_earliest_of_the_slots_in_the_way_is_named() -> None:
    later = BlockingSlot(slot_id="s0", social_account_id="page", schedule_time=START + timedelta(seconds=60))
    taken = TakenTimes({(PAGE, START + timedelta(seconds=30)): later})
    taken.add([added()])
    blocking = taken.blocking(PAGE, START + timedelta(seconds=30))
    assert blocking
    assert blocking.slot_id == "s1"


def test_an_account_of_the_same_name_elsewhere_is_free() -> None:
    taken = TakenTimes({})
    taken.add([added()])
    assert taken.blocking(OTHER, START) is None


def test_a_slot_that_was_there_blocks_the_time_that_was_looked_up() -> None:
    there = BlockingSlot(slot_id="s0", social_account_id="page", schedule_time=START + timedelta(seconds=30))
    taken = TakenTimes({(PAGE, START): there})
    assert taken.blocking(PAGE, START) is there
    assert taken.blocking(OTHER, START) is None
