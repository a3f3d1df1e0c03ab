"""A stack to break, once per module: a process that ends stays down until a test starts it."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from devstack.stack import Stack
from testkit.stack.mixed_run import QUICK
from testkit.stack.posting import Posting
from testkit.stack.tenant import Clients, Tenant

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
    """Makes posts of a new organization. Afterwards it starts all that the test left stopped."""
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
