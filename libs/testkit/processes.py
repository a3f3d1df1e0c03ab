"""Runs a service's whole process on the loop of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from servicekit.rpc import RpcServer, open_channel
from servicekit.run import Process, serve


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[grpc.aio.Channel]:
    """Yields a channel to the process once it serves, and drains it at the end. Raises if the process ends before."""
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(process, stop, ready))
        async with asyncio.timeout(30):
            await ready.wait()
        assert isinstance(process.server, RpcServer)
        async with open_channel(f"127.0.0.1:{process.server.port}") as channel:
            yield channel
        stop.set()
