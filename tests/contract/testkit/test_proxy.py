import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from testkit.eventually import holds
from testkit.stack.proxy import Proxy


@pytest.fixture
async def proxy(empty_database: str) -> AsyncIterator[Proxy]:
    async with Proxy(empty_database) as proxy:
        yield proxy


async def test_statements_reach_the_server_and_answers_come_back(proxy: Proxy) -> None:
    proxy.delays = [0.01]
    connection = await asyncpg.connect(proxy.url)
    async with connection.transaction():
        assert await connection.fetchval("select repeat('x', 1000000)") == "x" * 1_000_000
    await connection.close()


async def test_frozen_data_arrives_after_the_thaw(proxy: Proxy) -> None:
    connection = await asyncpg.connect(proxy.url)
    proxy.freeze()
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(connection.fetchval("select 1"))

        async def waits() -> bool:
            return not answer.done()

        await holds(waits, during=0.1)
        proxy.thaw()
    assert answer.result() == 1
    await connection.close()


async def test_a_stopped_proxy_cuts_its_connections(empty_database: str) -> None:
    async with Proxy(empty_database) as proxy:
        connection = await asyncpg.connect(proxy.url)
    with pytest.raises((OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
        await connection.fetchval("select 1")
    connection.terminate()
