"""One suite for both stores: `jobs` and `scene` are parametrised over memory and SQL."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from servicekit.pg.database import async_url
from testkit.clocks import FrozenClock
from testkit.jobs import Jobs, MemoryJobs, Scene, SqlJobs, create_table


@pytest.fixture
async def engine(empty_database: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(async_url(empty_database), pool_size=25)
    await create_table(engine)
    yield engine
    await engine.dispose()


@pytest.fixture(params=["memory", "sql"])
def jobs(request: pytest.FixtureRequest, frozen_clock: FrozenClock) -> Jobs:
    if request.param == "memory":
        return MemoryJobs(frozen_clock)
    return SqlJobs(frozen_clock, request.getfixturevalue("engine"))


@pytest.fixture
def scene(jobs: Jobs) -> Scene:
    return Scene(jobs)
