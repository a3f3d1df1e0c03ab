from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from devstack.sandbox.provider import Sandbox
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from testkit.databases import migrate
from tests.usecase.publisher_service.containers import Containers, containers_of
from tests.usecase.publisher_service.notified import Notified
from tests.usecase.publisher_service.notified import notified as notified_on
from tests.usecase.publisher_service.outreach import Outreach
from tests.usecase.publisher_service.renewing import Renewing, renewing
from tests.usecase.publisher_service.replica import Replica
from tests.usecase.publisher_service.rig import Start, starting
from tests.usecase.publisher_service.visiting import Visiting


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url)
    yield replica
    await replica.database.dispose()


@pytest.fixture
async def outreach(database_url: str) -> AsyncIterator[Outreach]:
    """An account that sends e-mails, under a clock that the test sets."""
    outreach = Outreach(database_url)
    await outreach.connect()
    yield outreach
    await outreach.replica.database.dispose()


@pytest.fixture
async def another(replica: Replica, database_url: str) -> AsyncIterator[Replica]:
    """A second replica on the same database."""
    another = Replica(database_url)
    yield another
    await another.database.dispose()


@pytest.fixture
async def hasty(replica: Replica, database_url: str) -> AsyncIterator[Replica]:
    """A second replica, whose leases end at once."""
    hasty = Replica(database_url, lease=timedelta(0))
    yield hasty
    await hasty.database.dispose()


@pytest.fixture
async def start(database_url: str, fresh_nats: EmbeddedNats, sandbox: Sandbox) -> Start:
    """`async with start(senders=1) as rig` runs a process with these settings."""
    return starting(database_url, fresh_nats, sandbox)


@pytest.fixture
async def start_on_own_postgres(own_postgres: EmbeddedPostgres, fresh_nats: EmbeddedNats, sandbox: Sandbox) -> Start:
    """Does what `start` does, on a PostgreSQL server that the test may kill."""
    url = (await own_postgres.provide(["publisher"]))["publisher"]
    await migrate(url, "publisher")
    return starting(url, fresh_nats, sandbox)


@pytest.fixture
async def containers(database_url: str, sandbox: Sandbox) -> AsyncIterator[Containers]:
    async with containers_of(database_url, sandbox) as containers:
        yield containers


@pytest.fixture
async def office(database_url: str, sandbox: Sandbox) -> AsyncIterator[Renewing]:
    """A process that refreshes credentials at the sandbox, step by step."""
    async with renewing(database_url, sandbox) as process:
        yield process


@pytest.fixture
async def branch(office: Renewing, database_url: str, sandbox: Sandbox) -> AsyncIterator[Renewing]:
    """A second one on the same database."""
    async with renewing(database_url, sandbox, process="two") as process:
        yield process


@pytest.fixture
async def visiting(office: Renewing) -> Visiting:
    """A process at which people connect accounts of the sandbox."""
    return Visiting(office)


@pytest.fixture
async def notified(database_url: str) -> AsyncIterator[Notified]:
    """The use cases of notifications at a frozen time, with a mail server and a webhook."""
    async with AsyncExitStack() as exits:
        yield await notified_on(database_url, exits)
