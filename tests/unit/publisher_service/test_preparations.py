"""Preparations are run by pools: one provider that hangs does not hold up another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from publisher_service.application.prepare_posts import PreparePosts
from publisher_service.engine.preparations import Preparations
from testkit.eventually import eventually


@dataclass
class Limits:
    preparers: int = 2


@dataclass
class AProvider:
    name: str
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Taken:
    provider: str
    post_job_id: str
    organization_id: str = ""


class Prepare:
    def __init__(self, waiting: dict[str, int]) -> None:
        self.providers = [AProvider(name) for name in waiting]
        self.waiting = waiting
        self.running: list[str] = []
        self.done: list[str] = []
        self.may_end = asyncio.Event()

    async def take(self, provider: AProvider, room: int, *, busy: Sequence[str]) -> Sequence[Taken]:
        count = min(room, self.waiting[provider.name])
        self.waiting[provider.name] -= count
        return [Taken(provider.name, f"job-{number}", f"org-{number}") for number in range(count)]

    async def __call__(self, taken: Taken) -> None:
        self.running.append(taken.provider)
        if taken.provider == "slow":
            await self.may_end.wait()
        if taken.provider == "broken":
            raise ValueError("a defect")
        self.done.append(taken.provider)


class Dripping(Prepare):
    """Has more posts of `hostile`, whose media drips, than there is room for, and one of `victim` once it may be."""

    def __init__(self) -> None:
        super().__init__({"slow": 0})
        self.providers[0].limits.preparers = 8
        self.is_due = False

    async def take(self, provider: AProvider, room: int, *, busy: Sequence[str]) -> Sequence[Taken]:
        due = ["hostile"] if "hostile" not in busy else []
        if self.is_due:
            due, self.is_due = [*due, "victim"], False
        return [Taken(provider.name, "job", each) for each in due[:room]]

    async def __call__(self, taken: Taken) -> None:
        self.running.append(taken.organization_id)
        if taken.organization_id == "hostile":
            await self.may_end.wait()
        self.done.append(taken.organization_id)


async def test_each_provider_has_room_of_its_own_and_a_defect_ends_nothing() -> None:
    prepare = Prepare({"slow": 5, "fast": 20, "broken": 3})
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(Preparations(cast("PreparePosts", cast("Any", prepare)), asyncio.Event()).run(stop))
        await eventually(lambda: prepare.done.count("fast") == 20 and prepare.running.count("broken") == 3)
        assert prepare.running.count("slow") == 2
        prepare.may_end.set()
        await eventually(lambda: prepare.done.count("slow") == 5)
        stop.set()


async def test_one_organization_has_half_of_the_room_of_a_provider() -> None:
    prepare, asked, stop = Dripping(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(Preparations(cast("PreparePosts", cast("Any", prepare)), asked).run(stop))
        await eventually(lambda: prepare.running.count("hostile") >= 4)
        prepare.is_due = True
        asked.set()
        await eventually(lambda: prepare.done == ["victim"])
        assert prepare.running.count("hostile") == 4
        stop.set()
        prepare.may_end.set()
