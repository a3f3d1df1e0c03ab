"""A server that is lost while a connection is being set up is unreachable for now, wherever it is cut."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from devstack.ports import free_port
from servicekit.pg.database import Database
from servicekit.pg.errors import is_transient
from servicekit.pg.session import Statement

_STEP = 23
_ONE = Statement("select 1")


@dataclass
class _Cutter:
    """Passes on `limit` bytes of the server in all, then cuts the connection that would get more."""

    url: str
    limit: int = 1_000_000
    passed: int = 0
    resets: bool = False


@asynccontextmanager
async def _cutter(url: str) -> AsyncIterator[_Cutter]:
    parts = urlsplit(url)
    port = free_port()
    cutter = _Cutter(url.replace(f":{parts.port}/", f":{port}/"))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(parts.hostname, parts.port)

        async def up() -> None:
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    to_server.write(data)
            to_server.close()

        async def down() -> None:
            room = 1
            while room and (data := await from_server.read(65536)):
                room = max(cutter.limit - cutter.passed, 0)
                cutter.passed += len(data[:room])
                writer.write(data[:room])
                room -= len(data[:room])
            if cutter.resets and not room:
                writer.transport.abort()
            writer.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(up())
            group.create_task(down())

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        yield cutter


async def _by_session(database: Database) -> None:
    async with database.session() as session:
        await session.fetch(_ONE)


async def _by_statement(database: Database) -> None:
    async with database.statement() as connection:
        await connection.execute(text("select 1"))


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("use", [_by_session, _by_statement])
async def test_a_connection_cut_anywhere_is_transient(
    database_url: str, use: Callable[[Database], Awaitable[None]], *, resets: bool
) -> None:
    async with _cutter(database_url) as cutter:
        cutter.resets = resets
        whole = Database(cutter.url, application="test", pool_size=1)
        await use(whole)
        await whole.dispose()
        length = cutter.passed
        errors = []
        for limit in range(0, length, _STEP):
            cutter.limit, cutter.passed = limit, 0
            database = Database(cutter.url, application="test", pool_size=1)
            try:
                await use(database)
            except Exception as error:  # noqa: BLE001 - any of them is looked at
                errors.append(error)
            cutter.limit = 1_000_000
            await use(database)
            await database.dispose()
        assert len(errors) > 10
        assert [error for error in errors if not is_transient(error)] == []
