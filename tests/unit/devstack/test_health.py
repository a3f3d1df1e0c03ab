import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from devstack.health import serving
from devstack.ports import free_port

Status = health_pb2.HealthCheckResponse


async def test_only_a_server_that_answers_serving_serves() -> None:
    assert not await serving(f"127.0.0.1:{free_port()}")
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        await servicer.set("", Status.NOT_SERVING)
        assert not await serving(f"127.0.0.1:{port}")
        await servicer.set("", Status.SERVING)
        assert await serving(f"127.0.0.1:{port}")
    finally:
        await server.stop(None)


async def test_a_server_without_health_does_not_serve() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        assert not await serving(f"127.0.0.1:{port}")
    finally:
        await server.stop(None)
