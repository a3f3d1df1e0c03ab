"""The room of a provider's lane."""

from datetime import timedelta

from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from tests.unit.publisher_service.post_jobs import command


def test_a_lane_has_room_until_it_is_full_of_unsent_posts() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    assert lane.now.room > 100
    for _ in range(lane.now.room):
        lane.enter(HeldCommand(command=command("slot"), since=0))
    assert lane.now.room == 0
    lane.leave()
    assert lane.now.room == 0  # it has not been sent yet


async def test_a_slow_provider_has_room_for_one_post_per_sender() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    times = iter(range(0, 1000, 10))

    async def send(work: HeldCommand) -> None:
        lane.leave()

    lane.enter(HeldCommand(command=command("slot"), since=0))
    lane.end()
    await lane.run(send, lambda: float(next(times)))
    assert lane.now.room == 4
