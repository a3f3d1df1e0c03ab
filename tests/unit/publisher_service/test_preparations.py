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


class Prepare:
    def __init__(self, waiting: dict[str, int]) -> None:
        self.providers = [AProvider(name) for name in waiting]
        self.waiting = waiting
        self.running: list[str] = []
        self.done: list[str] = []
        self.may_end = asyncio.Event()

    async def take(self, provider: AProvider, room: int) -> Sequence[Taken]:
        count = min(room, self.waiting[provider.name])
        self.waiting[provider.name] -= count
        return [Taken(provider.name, f"job-{number}") for number in range(count)]

    async def __call__(self, taken: Taken) -> None:
        self.running.append(taken.provider)
        if taken.provider == "slow":
            await self.may_end.wait()
        if taken.provider == "broken":
            raise ValueError("a defect")
        self.done.append(taken.provider)


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
