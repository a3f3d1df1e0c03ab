"""A stack to be broken, once for each module: what ends stays down until a test starts it again."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from devstack.stack import Stack
from testkit.stack.posting import Posting
from testkit.stack.tenant import Clients, Tenant

# A claim is held for 3.5 s, a due timer for two; the provider is asked after one second, and a person after fifteen: a
# crash is over in about five.
QUICK = {
    "POSTFLOW_PUBLISHER_REQUEST_TIMEOUT": "1.5",
    "POSTFLOW_PUBLISHER_LEASE_MARGIN": "2",
    "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "1",
    "POSTFLOW_PUBLISHER_UNKNOWN_DEADLINE": "15",
    "POSTFLOW_PUBLISHER_LOOKUP_AGAIN": "1",
    "POSTFLOW_PUBLISHER_RETRY_FIRST": "0.5",
    "POSTFLOW_PUBLISHER_RETRY_CAP": "2",
    "POSTFLOW_PUBLISHER_SWEEP_PERIOD": "0.25",
    "POSTFLOW_SCHEDULE_TIMER_LOCK": "2",
}

_numbers = count(1)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("stack") / "state", environment=QUICK, respawn=False) as running:
        yield running


@pytest.fixture(scope="module")
async def clients(stack: Stack) -> AsyncIterator[Clients]:
    made = Clients(stack.targets)
    yield made
    await made.close()


@pytest.fixture
async def posting(stack: Stack, clients: Clients) -> AsyncIterator[Posting]:
    """Of a new organization. Afterwards everything runs again, whatever the test has left behind."""
    await clients.ready()
    yield Posting(stack, Tenant(clients, f"run-{next(_numbers)}"))
    await stack.sandbox.clear_faults()
    if stack.postgres is not None and not stack.postgres.running:
        await stack.postgres.start()
    if stack.nats is not None and not stack.nats.running:
        await stack.nats.start()
    for service in stack.targets:
        if not stack.running(service):
            await stack.start(service, {f"POSTFLOW_{service.upper()}_FAILPOINTS": ""})
