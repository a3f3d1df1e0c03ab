"""Fixtures on real servers. Each server is started by the first test that needs it and serves the whole session."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from nats.aio.client import Client

from devstack.ports import free_port as any_free_port
from devstack.sandbox.provider import Sandbox
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres, Mode
from servicekit.bus.connection import close, connect
from servicekit.pg.database import Database
from testkit.clocks import FrozenClock
from testkit.databases import COMMON, Databases
from testkit.server_folder import server_folder as folder_for_servers

# How long an example takes is no property of the code: a busy machine is not a failure.
settings.register_profile("postflow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("postflow")


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Makes the folder of the servers' data, and deletes it at the end: pytest would keep those of three runs."""
    with folder_for_servers() as folder:
        yield folder


@pytest.fixture(scope="session")
async def postgres(server_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """Runs PostgreSQL without fsync."""
    async with EmbeddedPostgres(server_folder / "postgres", mode=Mode.FAST) as server:
        yield server


@pytest.fixture
async def own_postgres(tmp_path: Path) -> AsyncIterator[EmbeddedPostgres]:
    """Runs PostgreSQL for this test alone, which may kill and restart it."""
    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as server:
        yield server


@pytest.fixture(scope="session")
async def databases(postgres: EmbeddedPostgres) -> Databases:
    return Databases(postgres)


@pytest.fixture
async def empty_database(databases: Databases) -> AsyncIterator[str]:
    """Returns the URL of a database without tables, for this test alone."""
    url = await databases.empty()
    yield url
    await databases.drop(url)


@pytest.fixture
async def service_database(databases: Databases) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """Makes databases for this test alone: `await service_database("queue")` is the URL of one with Queue's tables."""
    made: list[str] = []

    async def make(service: str) -> str:
        made.append(await databases.migrated(service))
        return made[-1]

    yield make
    for url in made:
        await databases.drop(url)


@pytest.fixture
async def database_url(request: pytest.FixtureRequest, service_database: Callable[[str], Awaitable[str]]) -> str:
    """Returns the URL of a database for this test alone, with the tables of the service whose folder the test is in.

    A test in `tests/usecase/queue_service` gets Queue's tables; one outside the services' folders gets the tables that
    every service has.
    """
    folders = request.path.relative_to(request.config.rootpath).parts
    services = [folder.removesuffix("_service") for folder in folders if folder.endswith("_service")]
    return await service_database(services[0] if services else COMMON)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Opens `database_url`."""
    database = Database(database_url, application="test")
    yield database
    await database.dispose()


@pytest.fixture(scope="session")
async def nats_server(server_folder: Path) -> AsyncIterator[EmbeddedNats]:
    """Runs NATS with JetStream for the whole session: use your own streams and subjects, never restart it."""
    async with EmbeddedNats(server_folder / "nats") as server:
        yield server


@pytest.fixture
async def fresh_nats(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    """Runs NATS with an empty store for this test alone, which may kill, restart and wipe it."""
    async with EmbeddedNats(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def own_connection(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    """A connection to `fresh_nats`, as a process makes it."""
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    yield client
    await close(client)


@pytest.fixture
async def other_connection(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    """A second connection to `fresh_nats`, as another replica makes it."""
    client = Client()
    await connect(client, fresh_nats.url, name="other")
    yield client
    await close(client)


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """Runs the sandbox provider on this loop, with an empty ledger."""
    async with Sandbox(tmp_path / "sandbox.jsonl") as server:
        yield server


@pytest.fixture
def frozen_clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Returns another unused port on each call."""
    return any_free_port
