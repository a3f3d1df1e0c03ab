"""Health of a service: it listens, and its gRPC health check answers SERVING."""

import asyncio
from contextlib import suppress

from devstack.ports import split

POLL_SECONDS = 0.03


async def serving(target: str) -> bool:
    """Returns whether the service is SERVING, on a new connection: a channel that has failed waits before the next."""
    if not await listening(target):
        return False
    import grpc  # a tenth of a second, spent while the services start
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with suppress(grpc.aio.AioRpcError):
        async with grpc.aio.insecure_channel(target) as channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=2)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
    return False


async def listening(target: str) -> bool:
    host, port = split(target)
    try:
        async with asyncio.timeout(1):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True
