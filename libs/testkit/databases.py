"""Gives each test a database, cloned from a template that is migrated once per session."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from devstack.servers.postgres import ROLE_PREFIX, EmbeddedPostgres

COMMON = "common"
"""Stands for no service: such a database has the tables that every service has, and no others."""


def migrations_of(service: str) -> str:
    """Returns the package with the migrations of a service, or of `COMMON`."""
    return "testkit.migrations" if service == COMMON else f"{service}_service.adapters.postgres.migrations"


async def migrate(url: str, service: str) -> None:
    from servicekit.pg import migrations

    await migrations.upgrade(url, migrations_of(service))


class Databases:
    def __init__(self, postgres: EmbeddedPostgres, migrate: Callable[[str, str], Awaitable[None]] = migrate) -> None:
        self._postgres = postgres
        self._migrate = migrate
        self._numbers = count(1)
        self._templates: set[str] = set()
        self._turn = asyncio.Lock()

    async def empty(self) -> str:
        """Creates an empty database, owned by the superuser, and returns its URL."""
        return await self._postgres.create_database(self._name("empty"))

    async def migrated(self, service: str) -> str:
        """Creates a database with the service's tables and returns its URL, for the service's own role."""
        async with self._turn:
            if service not in self._templates:
                urls = await self._postgres.provide([service])
                await self._migrate(urls[service], service)
                self._templates.add(service)
        return await self._postgres.create_database(self._name(service), template=service, owner=ROLE_PREFIX + service)

    async def drop(self, url: str) -> None:
        await self._postgres.drop_database(url.rpartition("/")[2])

    def _name(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers)}"
