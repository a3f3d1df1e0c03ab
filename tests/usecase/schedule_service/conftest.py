"""Fixtures for the use cases of Schedule on a real database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import pytest

from servicekit.pg.database import Database

Bystander: TypeAlias = Callable[[Callable[[], int]], AbstractAsyncContextManager[list[int]]]


@pytest.fixture
async def schedule_database(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Database]:
    database = Database(await service_database("schedule"), application="test", pool_size=4)
    yield database
    await database.dispose()


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
