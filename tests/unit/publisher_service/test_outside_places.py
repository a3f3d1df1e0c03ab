"""Places are bounded, fair over organizations, and never lost."""

import asyncio
from asyncio import Task, TaskGroup

import pytest

from publisher_service.adapters.outside.places import Crowded, Places
from testkit.eventually import eventually


class Holders:
    """Tasks that take a place each, and note who got one."""

    def __init__(self, places: Places, group: TaskGroup) -> None:
        self.places = places
        self.group = group
        self.granted: list[str] = []

    def begin(self, *organizations: str) -> list[Task[None]]:
        return [self.group.create_task(self._take(each)) for each in organizations]

    async def _take(self, organization_id: str) -> None:
        await self.places.take(organization_id)
        self.granted.append(organization_id)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_organization_leaves_room_for_another() -> None:
    places = Places(4, share=2)
    async with TaskGroup() as group:
        holders = Holders(places, group)
        holders.begin("flood", "flood", "flood", "flood")
        await settle()
        holders.begin("other", "other")
        await settle()
        assert holders.granted == ["flood", "flood", "other", "other"]
        for _ in range(2):
            places.give_back("flood")
        await eventually(lambda: holders.granted[4:] == ["flood", "flood"])


async def test_a_free_place_goes_to_nobody_who_has_its_share() -> None:
    places = Places(3, share=2)
    async with TaskGroup() as group:
        holders = Holders(places, group)
        holders.begin("flood", "flood", "flood", "other")
        await settle()
        places.give_back("other")
        await settle()
        assert holders.granted == ["flood", "flood", "other"]
        holders.begin("other")
        await settle()
        places.give_back("flood")
    assert holders.granted == ["flood", "flood", "other", "other", "flood"]


async def test_those_that_wait_take_turns_over_organizations() -> None:
    places = Places(1, share=1)
    await places.take("first")
    async with TaskGroup() as group:
        holders = Holders(places, group)
        holders.begin("flood", "flood", "flood", "other", "third")
        await settle()
        last = "first"
        for count in range(5):
            places.give_back(last)
            await eventually(lambda seen=count: len(holders.granted) == seen + 1)  # type: ignore[misc]
            last = holders.granted[-1]
    assert holders.granted == ["flood", "other", "third", "flood", "flood"]


async def test_a_waiter_that_leaves_loses_no_place() -> None:
    places = Places(1, share=1)
    await places.take("acme")
    async with TaskGroup() as group:
        holders = Holders(places, group)
        waiting, granted, last = holders.begin("acme", "acme", "acme")
        await settle()
        waiting.cancel()
        await settle()
        places.give_back("acme")  # for `granted`, which is canceled before it runs again
        granted.cancel()
        await eventually(last.done)
    assert holders.granted == ["acme"]
    places.give_back("acme")
    await places.take("acme")


async def test_a_place_is_not_given_to_a_waiter_that_is_being_canceled() -> None:
    places = Places(1, share=1)
    await places.take("acme")
    async with TaskGroup() as group:
        holders = Holders(places, group)
        first, second, other = holders.begin("acme", "acme", "other")
        await settle()
        first.cancel()
        second.cancel()
        places.give_back("acme")
        await eventually(other.done)
    assert holders.granted == ["other"]
    places.give_back("other")
    await places.take("acme")


async def test_too_many_waiters_are_refused() -> None:
    places = Places(1, share=1, waiting=1)
    await places.take("acme")
    async with TaskGroup() as group:
        holders = Holders(places, group)
        (waiting,) = holders.begin("acme")
        await settle()
        with pytest.raises(Crowded):
            await places.take("acme")
        holders.begin("other")
        await settle()
        places.give_back("acme")
        await eventually(waiting.done)
        places.give_back("acme")
    assert holders.granted == ["acme", "other"]


async def test_a_place_is_given_back_after_an_error() -> None:
    places = Places(1, share=1)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with places.place("acme"):
                raise KeyError
    async with asyncio.timeout(5):
        await places.take("acme")
