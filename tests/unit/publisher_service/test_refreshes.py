"""Refreshes are run by pools: one provider that hangs does not hold up another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from publisher_service.application.refresh_due import RefreshDue
from publisher_service.engine.refreshes import Refreshes
from testkit.eventually import eventually


@dataclass
class AProvider:
    name: str


class Refresh:
    def __init__(self, waiting: dict[str, int]) -> None:
        self.providers = [AProvider(name) for name in waiting]
        self.waiting = waiting
        self.running: list[str] = []
        self.done: list[str] = []
        self.may_end = asyncio.Event()

    async def take(self, provider: AProvider, room: int) -> tuple[Sequence[Any], bool]:
        count = min(room, self.waiting[provider.name])
        self.waiting[provider.name] -= count
        due = SimpleNamespace(account_id="page", provider=provider.name)
        return [SimpleNamespace(due=due) for _ in range(count)], count > 0

    async def __call__(self, taken: Any) -> None:
        provider = taken.due.provider
        self.running.append(provider)
        if provider == "slow":
            await self.may_end.wait()
        if provider == "broken":
            raise ValueError("a defect")
        self.done.append(provider)


async def test_each_provider_has_room_of_its_own_and_a_defect_ends_nothing() -> None:
    refresh = Refresh({"slow": 40, "fast": 50, "broken": 3})
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(Refreshes(cast("RefreshDue", cast("Any", refresh)), asyncio.Event()).run(stop))
        await eventually(lambda: refresh.done.count("fast") == 50 and refresh.running.count("broken") == 3)
        assert refresh.running.count("slow") == 16
        refresh.may_end.set()
        await eventually(lambda: refresh.done.count("slow") == 40)
        stop.set()
