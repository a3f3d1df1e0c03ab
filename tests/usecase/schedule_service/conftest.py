from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from servicekit.pg.database import Database


@pytest.fixture
async def schedule_database(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Database]:
    database = Database(await service_database("schedule"), application="test", pool_size=4)
    yield database
    await database.dispose()
