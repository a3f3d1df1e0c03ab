"""Fixtures for the use cases of Schedule on a real database."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import pytest

Bystander: TypeAlias = Callable[[Callable[[], int]], AbstractAsyncContextManager[list[int]]]


@pytest.fixture
def bystander() -> Bystander:
    """A task that runs next to long work, and notes the progress each time that it gets the event loop."""

    @asynccontextmanager
    async def watch(progress: Callable[[], int]) -> AsyncIterator[list[int]]:
        seen: list[int] = [progress()]

        async def look() -> None:
            while True:
                seen.append(progress())
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look())
            yield seen
            seen.append(progress())
            looking.cancel()

    return watch
