"""The shares of organizations in a provider's lane: servers of one tenant that hang hold up no other tenant's posts."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from testkit.eventually import eventually
from tests.unit.publisher_service.post_jobs import command

SENDERS = 16
HALF = SENDERS // 2
LEASE = timedelta(seconds=25)


class Site:
    """A lane in which the requests of `hostile` and `rival` hang until they are answered, and all others do not."""

    def __init__(self, senders: int = SENDERS) -> None:
        self.time = 100.0
        self.lane = ProviderLane("webhook", senders=senders, lease=LEASE, seconds=lambda: self.time)
        self.hanging: list[asyncio.Event] = []
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.is_over = False

    def enter(self, organization_id: str, count: int = 1) -> None:
        for number in range(count):
            entering = replace(command(f"slot-{number}"), organization_id=organization_id)
            self.lane.enter(HeldCommand(command=entering, since=0, claim_started=self.time))

    async def send(self, held: HeldCommand) -> bool:
        organization_id = held.command.organization_id
        self.begun.append(organization_id)
        if organization_id in {"hostile", "rival"} and not self.is_over:
            self.hanging.append(answer := asyncio.Event())
            await answer.wait()
        self.ended.append(organization_id)
        self.lane.leave()
        return True

    def answer(self) -> None:
        self.hanging.pop(0).set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lane.run(self.send, lambda: self.time))
            yield
            self.is_over = True
            while self.hanging:
                self.answer()
            self.lane.end()


async def test_one_organization_has_half_of_the_senders() -> None:
    site = Site()
    async with site.running():
        site.enter("hostile", 40)
        site.enter("victim", 3)
        await eventually(lambda: site.ended == ["victim"] * 3)
        assert site.begun.count("hostile") == HALF
        site.answer()
        await eventually(lambda: site.begun.count("hostile") == HALF + 1)
    assert site.ended.count("hostile") == 40, "what was held back is sent, too"


async def test_a_single_sender_serves_everybody() -> None:
    site = Site(senders=1)
    async with site.running():
        site.enter("victim", 3)
        await eventually(lambda: site.ended == ["victim"] * 3)


async def test_what_hangs_for_long_takes_no_room_from_others_and_gets_no_more() -> None:
    site = Site()
    async with site.running():
        site.enter("hostile", SENDERS)
        await eventually(lambda: len(site.hanging) == HALF)
        assert (site.lane.now.room, site.lane.now.crowded) == (0, ()), "they may be answered in a moment"
        site.time += 2.1
        assert (site.lane.now.room, site.lane.now.crowded) == (HALF, ("hostile",))
        site.enter("victim")
        await eventually(lambda: "victim" in site.ended)
        while site.lane.now.crowded:
            site.answer()
            await asyncio.sleep(0)
    assert len(site.ended) == SENDERS + 1


async def test_an_organization_alone_gets_as_many_as_its_own_senders_begin() -> None:
    site = Site()
    async with site.running():
        site.enter("hostile", HALF)
        await eventually(lambda: len(site.hanging) == HALF)
        assert site.lane.now.room == HALF
        site.enter("hostile", HALF)
        await asyncio.sleep(0)
        assert site.lane.now.room == 0


async def test_full_lanes_of_a_fast_provider_crowd_nobody() -> None:
    site = Site()
    async with site.running():
        site.enter("victim", 500)
        await eventually(lambda: len(site.ended) == 500)
        assert site.lane.now.crowded == ()
        assert site.lane.now.room == 500


@pytest.mark.parametrize("seed", range(20))
async def test_a_post_waits_no_longer_for_a_sender_than_its_lease_lasts(seed: int) -> None:
    """A post that ends later than its lease counts as lost: its outcome would be unknown."""
    draw = random.Random(seed)
    longest = 20.0
    time, waits = 0.0, []
    lane = ProviderLane("webhook", senders=4, lease=LEASE, seconds=lambda: time)
    sleeping: list[tuple[float, asyncio.Event]] = []

    async def send(held: HeldCommand) -> bool:
        waits.append(time - held.claim_started)
        if LEASE.total_seconds() - waits[-1] >= longest:
            sleeping.append((time + draw.uniform(0, longest), answer := asyncio.Event()))
            await answer.wait()
        lane.leave()
        return True

    async with asyncio.TaskGroup() as group:
        group.create_task(lane.run(send, lambda: time))
        for number in range(400):
            organization_id = draw.choice(["hostile", "hostile", "rival", "victim"])
            if lane.now.room and organization_id not in lane.now.crowded:
                entering = replace(command(f"slot-{number}"), organization_id=organization_id)
                lane.enter(HeldCommand(command=entering, since=0, claim_started=time))
            for _ in range(20):
                await asyncio.sleep(0)
            time += draw.choice([0.0, 0.1, 1.0])
            for due in sorted(sleeping, key=lambda each: each[0]):
                if due[0] <= time:
                    sleeping.remove(due)
                    due[1].set()
        lane.end()
        while sleeping:
            time = max(time, min(sleeping, key=lambda each: each[0])[0])
            sleeping.sort(key=lambda each: each[0])
            sleeping.pop(0)[1].set()
            for _ in range(20):
                await asyncio.sleep(0)
    assert max(waits) < LEASE.total_seconds()
