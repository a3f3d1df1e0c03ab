"""Fixtures on real servers. Each server is started by the first test that asks for it, and serves the whole session."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from devstack.ports import free_port as any_free_port
from devstack.sandbox.provider import Sandbox
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres, Mode
from testkit.clocks import FrozenClock
from testkit.databases import Databases
from testkit.server_folder import server_folder as folder_for_servers

# How long an example takes is no property of the code: a busy machine is not a failure.
settings.register_profile("postflow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("postflow")


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """For the servers' data: deleted at the end, while pytest would keep that of three runs."""
    with folder_for_servers() as folder:
        yield folder


@pytest.fixture(scope="session")
async def postgres(server_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """PostgreSQL that does not wait for the disk."""
    async with EmbeddedPostgres(server_folder / "postgres", mode=Mode.FAST) as server:
        yield server


@pytest.fixture(scope="session")
async def databases(postgres: EmbeddedPostgres) -> Databases:
    return Databases(postgres)


@pytest.fixture
async def empty_database(databases: Databases) -> AsyncIterator[str]:
    """The URL of a database without tables, for this test alone."""
    url = await databases.empty()
    yield url
    await databases.drop(url)


@pytest.fixture
async def service_database(databases: Databases) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """`await service_database("queue")` is the URL of a database with that service's tables, for this test alone."""
    made: list[str] = []

    async def make(service: str) -> str:
        made.append(await databases.migrated(service))
        return made[-1]

    yield make
    for url in made:
        await databases.drop(url)


@pytest.fixture(scope="session")
async def nats_server(server_folder: Path) -> AsyncIterator[EmbeddedNats]:
    """NATS with JetStream for the whole session: use stream names and subjects of your own, restart nothing."""
    async with EmbeddedNats(server_folder / "nats") as server:
        yield server


@pytest.fixture
async def fresh_nats(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    """NATS with an empty store for this test alone, to be killed, restarted and wiped."""
    async with EmbeddedNats(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """The sandbox provider on this loop, with an empty ledger."""
    async with Sandbox(tmp_path / "sandbox.jsonl") as server:
        yield server


@pytest.fixture
def frozen_clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Each call gives another port that nobody listens on."""
    return any_free_port
