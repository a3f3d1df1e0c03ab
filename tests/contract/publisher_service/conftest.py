from collections.abc import AsyncIterator

import aiohttp
import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from tests.contract.publisher_service.sandbox import LIMITS


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxClient:
    return SandboxClient(sandbox.url, sandbox.path)


@pytest.fixture
def provider(session: aiohttp.ClientSession, sandbox: Sandbox) -> SandboxAdapter:
    return SandboxAdapter(session, f"{sandbox.url}/", LIMITS)
