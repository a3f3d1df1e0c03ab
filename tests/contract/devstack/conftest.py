import pytest

from devstack.sandbox.provider import Sandbox
from tests.contract.devstack.sandbox_calls import Client


@pytest.fixture
async def client(sandbox: Sandbox) -> Client:
    return Client(sandbox.url)
