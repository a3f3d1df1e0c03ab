"""The room of a provider's lane."""

from collections.abc import Sequence
from datetime import timedelta

from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from tests.unit.publisher_service.post_jobs import command


async def test_a_lane_has_room_until_it_is_full_of_unsent_posts() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    await answer_one(lane, [0.0, 0.001])
    assert lane.now.room > 100
    for _ in range(lane.now.room):
        lane.enter(HeldCommand(command=command("slot"), since=0))
    assert lane.now.room == 0
    lane.leave()
    assert lane.now.room == 0  # it has not been sent yet


def test_a_provider_counts_as_slow_until_its_first_answer() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    assert lane.now.room == 4


async def test_a_slow_provider_has_room_for_one_post_per_sender() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    await answer_one(lane, [0.0, 10.0])
    assert lane.now.room == 4


async def test_a_provider_gets_no_more_than_begins_in_two_seconds() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    await answer_one(lane, [0.0, 0.05])
    assert lane.now.room == 160


async def test_a_few_places_are_no_room_while_every_sender_has_more_to_do() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    await answer_one(lane, [0.0, 0.001])
    full = lane.now.room
    for _ in range(full):
        lane.enter(HeldCommand(command=command("slot"), since=0))
    for places in range(1, 300):
        lane.leave()
        lane._waiting.get_nowait()
        assert lane.now.room == (places if places >= 200 else 0)


async def test_a_few_places_are_room_for_senders_that_have_nothing_to_do() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    await answer_one(lane, [0.0, 0.001])
    for _ in range(lane.now.room):
        lane.enter(HeldCommand(command=command("slot"), since=0))
        lane._waiting.get_nowait()  # a sender has it
    assert lane.now.room == 0
    lane.leave()
    assert lane.now.room == 1


async def test_posts_that_were_not_sent_make_no_provider_fast() -> None:
    lane = ProviderLane("sandbox", senders=1, lease=timedelta(seconds=15))
    clock, asked = iter([0.0, 10.0, *[10.0] * 40]), iter([True, *[False] * 40])

    async def send(work: HeldCommand) -> bool:
        lane.leave()
        return next(asked)

    for _ in range(41):
        lane.enter(HeldCommand(command=command("slot"), since=0))
    lane.end()
    await lane.run(send, lambda: next(clock))
    assert lane.seconds == 10.0
    assert lane.now.room == 1


async def answer_one(lane: ProviderLane, times: Sequence[float]) -> None:
    """Sends one post, which begins and ends at these times."""
    clock = iter(times)

    async def send(work: HeldCommand) -> bool:
        lane.leave()
        return True

    lane.enter(HeldCommand(command=command("slot"), since=0))
    lane.end()
    await lane.run(send, lambda: next(clock))
