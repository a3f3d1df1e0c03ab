"""The server: listening, readiness, reflection, stopping."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from servicekit import faults
from servicekit.ids import Uuid7Source
from servicekit.rpc import CannotListen, RpcServer, calling, open_channel
from testkit.tiny import SERVICE, EchoResponse, TinyServicer, TinyStub, add_tiny_servicer, request

Serve = Callable[..., Awaitable[RpcServer]]

GRPCURL = Path(sys.executable).parent / "grpcurl"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def tiny_server(listen: str = "127.0.0.1:0") -> RpcServer:
    return RpcServer(listen=listen, servicers=[(add_tiny_servicer, TinyServicer())], ids=Uuid7Source())


async def grpcurl(server: RpcServer, *words: str, data: str = "") -> str:
    options = ["-plaintext", "-max-time", "10", *(["-d", data] if data else [])]
    process = await asyncio.create_subprocess_exec(
        GRPCURL,
        *options,
        f"127.0.0.1:{server.port}",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


async def test_a_server_is_not_serving_at_first(serve: Serve) -> None:
    server = await serve(serving=False)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING
        await server.set_serving(serving=True)
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == SERVING


async def test_a_server_that_is_not_ready_is_alive(serve: Serve) -> None:
    server = await serve(serving=False)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        alive = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="liveness"))
    assert alive.status == SERVING


async def test_a_watcher_of_the_health_sees_each_change(serve: Serve) -> None:
    server = await serve(serving=False)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == NOT_SERVING
        await server.set_serving(serving=True)
        assert (await watch.read()).status == SERVING
        watch.cancel()


async def test_the_health_of_an_unknown_service_is_not_found(serve: Serve) -> None:
    server = await serve()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="nobody"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert "known are tiny.v1.TinyService, liveness" in str(caught.value.details())


async def test_each_service_has_the_health_of_its_process(serve: Serve) -> None:
    server = await serve(serving=False)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service="tiny.v1.TinyService")
        assert (await health.Check(request)).status == NOT_SERVING
        await server.set_serving(serving=True)
        assert (await health.Check(request)).status == SERVING


async def test_a_port_in_use_is_a_clear_error(serve: Serve) -> None:
    server = await serve()
    with pytest.raises(CannotListen, match=f"127.0.0.1:{server.port}"):
        await tiny_server(f"127.0.0.1:{server.port}").start()


async def test_the_port_is_known_before_the_start() -> None:
    server = tiny_server()
    port = server.port
    await server.start()
    await server.set_serving(serving=True)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert (await TinyStub(channel).Echo(request("x"))).text == "x"
    await server.stop(0)


async def test_grpcurl_lists_the_services(serve: Serve) -> None:
    listed = (await grpcurl(await serve(), "list")).split()
    assert SERVICE in listed
    assert "grpc.health.v1.Health" in listed


async def test_grpcurl_describes_a_method_and_its_request(serve: Serve) -> None:
    server = await serve()
    assert "rpc Echo ( .tiny.v1.EchoRequest )" in await grpcurl(server, "describe", SERVICE)
    assert "string organization_id = 1" in await grpcurl(server, "describe", "tiny.v1.EchoRequest")


async def test_grpcurl_calls_a_method_and_shows_a_refusal_decoded(serve: Serve) -> None:
    server = await serve()
    answer = await grpcurl(server, f"{SERVICE}/Echo", data='{"organizationId": "acme", "text": "hi"}')
    assert json.loads(answer) == {"text": "hi"}
    refusal = await grpcurl(server, f"{SERVICE}/Echo", data='{"organizationId": "a b"}')
    assert "Code: InvalidArgument" in refusal
    assert "google.rpc.BadRequest" in refusal
    assert '"field":"organization_id"' in refusal


async def test_reflection_answers_under_its_newer_name_too(serve: Serve) -> None:
    server = await serve()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        ask: Any = channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        call = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        answer = await call.read()
    assert SERVICE in {service.name for service in answer.list_services_response.service}


async def test_malformed_reflection_requests_are_refused(serve: Serve) -> None:
    server = await serve()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        ask: Any = channel.stream_stream(path)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(iter([b"\xff\xff"])).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_stop_waits_for_the_call_in_flight(serve: Serve) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        await go_on.wait()
        return EchoResponse(text="late but here")

    server = await serve(answer=answer)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        call = TinyStub(channel).Echo(request())
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            await began.wait()
            stopping = group.create_task(server.stop(10.0))
            go_on.set()
            assert (await call).text == "late but here"
            await stopping


async def test_a_stop_cancels_calls_that_outlast_the_grace(serve: Serve) -> None:
    began = asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    server = await serve(answer=answer)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel, asyncio.timeout(10):
        call = TinyStub(channel).Echo(request())
        await began.wait()
        await server.stop(0.05)
        with pytest.raises(grpc.aio.AioRpcError):
            await call


async def test_a_stop_ends_the_streams_at_once(serve: Serve) -> None:
    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield EchoResponse(text="first")
        await asyncio.Event().wait()

    server = await serve(watch=watch)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel, asyncio.timeout(10):
        call = TinyStub(channel).Watch(request())
        assert (await call.read()).text == "first"
        await server.stop(3600)
        with pytest.raises(faults.Unavailable) as caught, calling():
            await call.read()
    assert caught.value.reason == "SERVER_STOPPING"


async def test_a_server_that_is_full_says_so(serve: Serve) -> None:
    began = asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    server = await serve(answer=answer, options={"max_concurrent_calls": 1})
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = TinyStub(channel)
        first = stub.Echo(request())
        async with asyncio.timeout(10):
            await began.wait()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Echo(request())
        first.cancel()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
