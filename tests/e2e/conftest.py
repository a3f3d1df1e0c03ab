"""Four real processes on real PostgreSQL and NATS, once per module that needs them."""

from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest

from devstack.stack import Stack
from testkit.stack.tenant import Clients, Tenant

_numbers = count(1)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Runs the stack for a module. Its tests share it, so each uses its own organizations."""
    async with Stack(tmp_path_factory.mktemp("stack") / "state") as running:
        yield running


@pytest.fixture(scope="module")
async def clients(stack: Stack) -> AsyncIterator[Clients]:
    made = Clients(stack.targets)
    yield made
    await made.close()


@pytest.fixture
def new_tenant(clients: Clients) -> Callable[[], Tenant]:
    """Returns another organization on each call."""
    return lambda: Tenant(clients, f"org-{next(_numbers)}")


@pytest.fixture
async def tenant(clients: Clients, new_tenant: Callable[[], Tenant]) -> Tenant:
    await clients.ready()
    return new_tenant()
