from collections.abc import AsyncIterator

import aiohttp
import pytest

from devstack.sandbox.provider import Sandbox
from tests.contract.devstack.sandbox_calls import Client


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield Client(session, sandbox.url)
