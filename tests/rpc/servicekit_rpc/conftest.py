from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer, open_channel
from testkit.tiny import TinyServicer, TinyStub, add_tiny_servicer

Serve = Callable[..., Awaitable[RpcServer]]
Connect = Callable[..., Awaitable[TinyStub]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers of the tiny service on free ports, SERVING: `await serve(answer=..., watch=..., **options)`."""
    async with AsyncExitStack() as stack:

        async def start(*, serving: bool = True, options: dict[str, Any] | None = None, **behavior: Any) -> RpcServer:
            servicers = [(add_tiny_servicer, TinyServicer(**behavior))]
            server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=Uuid7Source(), **(options or {}))
            await server.start()
            stack.push_async_callback(server.stop, 0.0)
            if serving:
                await server.set_serving(serving=True)
            return server

        yield start


@pytest.fixture
async def connect(serve: Serve) -> AsyncIterator[Connect]:
    """Connects stubs to such servers by our channel: `await connect(answer=...)`."""
    async with AsyncExitStack() as stack:

        async def start(**behavior: Any) -> TinyStub:
            server = await serve(**behavior)
            return TinyStub(await stack.enter_async_context(open_channel(f"127.0.0.1:{server.port}")))

        yield start
