"""The access log of calls."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import grpc
import pytest

from servicekit.faults import Unavailable
from servicekit.rpc import RpcServer, open_channel
from servicekit.run import context
from testkit.tiny import SERVICE, EchoRequest, TinyStub, request

Connect = Callable[..., Awaitable[TinyStub]]
Serve = Callable[..., Awaitable[RpcServer]]


async def refused(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def raising(error: BaseException) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def answer(_request: Any, _context: Any) -> Any:
        raise error

    return answer


async def test_each_call_is_one_line_of_the_access_log(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stub = await connect(answer=raising(Unavailable("HOLD_PENDING", "soon", retry_after=timedelta(minutes=1))))
    await refused(stub.Echo(request()))
    (line,) = access_log(caplog)
    assert (line["method"], line["code"], line["reason"]) == (f"{SERVICE}/Echo", "UNAVAILABLE", "HOLD_PENDING")
    assert line["duration_ms"] >= 0


async def test_a_refused_call_is_logged_with_its_reason_and_field(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await refused((await connect()).Echo(EchoRequest(organization_id="acme", text="\0")))
    (line,) = access_log(caplog)
    assert (line["code"], line["reason"], line["field"]) == ("INVALID_ARGUMENT", "INVALID_FIELD", "text")


@pytest.mark.parametrize("organization_id", ["evil\x1b]0;pwned\x07\nFAKE", "x" * 200_000, "a b", "\u202e"])
async def test_an_invalid_organization_appears_in_no_log_or_span(connect: Connect, organization_id: str) -> None:
    seen: list[str] = []

    class Watching(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(context.organization_id.get())

    handler, access = Watching(), logging.getLogger("servicekit.rpc.access")
    access.addHandler(handler)
    access.setLevel(logging.INFO)
    try:
        stub = await connect()
        await refused(stub.Echo(EchoRequest(organization_id=organization_id, text="x")))
        await refused(stub.Echo(EchoRequest(organization_id="acme", text="\0")))
    finally:
        access.removeHandler(handler)
        access.setLevel(logging.NOTSET)
    assert seen == ["", "acme"]


async def test_health_checks_are_not_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    caplog.set_level(logging.INFO)
    server = await serve()
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert access_log(caplog) == []


def access_log(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__ for record in caplog.records if record.name == "servicekit.rpc.access"]
