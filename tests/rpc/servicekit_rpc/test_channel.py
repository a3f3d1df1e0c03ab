"""Calls through our channel: the metadata that it adds, its retries, and errors as faults."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
import pytest

from servicekit import faults
from servicekit.faults import Code, Fault
from servicekit.rpc import RpcServer, calling, fault_from_error, open_channel
from servicekit.run import context
from servicekit.run.transient import is_transient
from testkit.eventually import eventually
from testkit.tiny import EchoResponse, TinyStub, request

Connect = Callable[..., Awaitable[TinyStub]]
Serve = Callable[..., Awaitable[RpcServer]]

ALL_FAULTS: list[type[Fault]] = [
    faults.InvalidRequest,
    faults.NotFound,
    faults.AlreadyExists,
    faults.Conflict,
    faults.Refused,
    faults.LimitReached,
    faults.Forbidden,
    faults.Unauthenticated,
    faults.Unavailable,
]


def raising(error: BaseException) -> Callable[..., Awaitable[Any]]:
    async def answer(_request: Any, _context: Any) -> Any:
        raise error

    return answer


async def metadata_of_the_call(_request: Any, rpc: Any) -> Any:
    return EchoResponse(text=repr(dict(rpc.invocation_metadata())))


async def time_left(_request: Any, rpc: Any) -> Any:
    return EchoResponse(text=str(rpc.time_remaining()))


@pytest.mark.parametrize("kind", ALL_FAULTS)
async def test_a_fault_of_a_service_is_the_same_fault_for_its_caller(connect: Connect, kind: type[Fault]) -> None:
    sent = kind(
        "SOME_REASON",
        "shown to the user",
        metadata={"a": "1", "b": "2"},
        retry_after=timedelta(seconds=7),
        violations=(faults.Violation(field="draft.targets[2].channel", description="unknown"),),
    )
    stub = await connect(answer=raising(sent))
    with pytest.raises(kind) as caught, calling():
        await stub.Echo(request())
    got = caught.value
    assert (got.reason, got.message, got.metadata) == (sent.reason, sent.message, sent.metadata)
    assert (got.retry_after, got.violations) == (sent.retry_after, sent.violations)


async def test_a_passed_deadline_is_a_downstream_timeout(connect: Connect) -> None:
    async def answer(_request: Any, _context: Any) -> Any:
        await asyncio.Event().wait()

    stub = await connect(answer=answer)
    with pytest.raises(faults.Unavailable) as caught, calling():
        await stub.Echo(request(), timeout=0.1)
    assert caught.value.reason == "DOWNSTREAM_TIMEOUT"


async def test_an_unreachable_service_is_downstream_unavailable(free_port: Callable[[], int]) -> None:
    async with open_channel(f"127.0.0.1:{free_port()}") as channel:
        with pytest.raises(faults.Unavailable) as caught, calling():
            await TinyStub(channel).Echo(request())
    assert caught.value.reason == "DOWNSTREAM_UNAVAILABLE"


async def test_a_defect_of_a_service_stays_a_defect(connect: Connect) -> None:
    stub = await connect(answer=raising(ValueError("x")))
    with pytest.raises(grpc.aio.AioRpcError) as caught, calling():
        await stub.Echo(request())
    assert caught.value.code() is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("code", list(Code))
def test_a_bare_code_has_a_reason_too(code: Code) -> None:
    error = grpc.aio.AioRpcError(
        grpc.StatusCode[code], grpc.aio.Metadata(), grpc.aio.Metadata(("grpc-status-details-bin", b"\xff")), "words"
    )
    fault = fault_from_error(error)
    assert fault.reason
    assert fault.message == "words"


def test_only_unreachable_services_are_transient() -> None:
    def failed(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
        return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())

    transient = {code for code in grpc.StatusCode if is_transient(failed(code))}
    assert transient == {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


async def test_a_call_without_a_timeout_gets_one(connect: Connect) -> None:
    answer = await (await connect(answer=time_left)).Echo(request())
    assert 0 < float(answer.text) < 11


async def test_the_callers_timeout_overrides_the_default(connect: Connect) -> None:
    answer = await (await connect(answer=time_left)).Echo(request(), timeout=25)
    assert 10 < float(answer.text) < 26


async def test_a_call_made_within_a_call_ends_with_it(serve: Serve, connect: Connect) -> None:
    inner = await connect(answer=time_left)

    async def answer(given: Any, _context: Any) -> Any:
        return await inner.Echo(given)

    outer = await connect(answer=answer)
    assert 0 < float((await outer.Echo(request(), timeout=3)).text) < 5


async def test_the_request_id_is_passed_on(connect: Connect) -> None:
    inner = await connect(answer=metadata_of_the_call)

    async def answer(given: Any, _context: Any) -> Any:
        return await inner.Echo(given, metadata=[("own", "kept")])

    outer = await connect(answer=answer)
    seen = (await outer.Echo(request(), metadata=[("x-request-id", "r-5")])).text
    assert "'x-request-id': 'r-5'" in seen
    assert "'own': 'kept'" in seen


async def test_the_context_of_a_call_ends_with_it(connect: Connect) -> None:
    await (await connect()).Echo(request(), metadata=[("x-request-id", "r-6")])
    assert context.request_id.get() == ""
    assert context.deadline.get() is None


async def test_an_unavailable_service_is_retried(connect: Connect) -> None:
    calls: list[Any] = []

    async def answer(given: Any, _context: Any) -> Any:
        calls.append(given)
        if len(calls) < 3:
            raise faults.Unavailable("DATABASE_AWAY", "soon")
        return EchoResponse(text="back")

    assert (await (await connect(answer=answer)).Echo(request())).text == "back"
    assert len(calls) == 3


async def test_a_refusal_is_not_retried(connect: Connect) -> None:
    calls: list[Any] = []

    async def answer(given: Any, _context: Any) -> Any:
        calls.append(given)
        raise faults.Refused("CLOSED", "no")

    with pytest.raises(faults.Refused), calling():
        await (await connect(answer=answer)).Echo(request())
    assert len(calls) == 1


async def test_a_lasting_outage_is_left_to_the_caller(connect: Connect) -> None:
    calls: list[Any] = []

    async def answer(given: Any, _context: Any) -> Any:
        calls.append(given)
        raise faults.Unavailable("HOLD_PENDING", "later", retry_after=timedelta(seconds=30))

    with pytest.raises(faults.Unavailable) as caught, calling():
        await (await connect(answer=answer)).Echo(request())
    assert len(calls) == 1
    assert caught.value.retry_after == timedelta(seconds=30)


async def test_a_message_over_the_limit_is_not_sent(connect: Connect) -> None:
    with pytest.raises(faults.LimitReached), calling():
        await (await connect()).Echo(request("x" * 1024 * 1024))


async def test_calls_are_balanced_over_serving_servers(serve: Serve) -> None:
    def named(name: str) -> Callable[..., Awaitable[Any]]:
        async def answer(_request: Any, _context: Any) -> Any:
            return EchoResponse(text=name)

        return answer

    one, two = await serve(answer=named("one")), await serve(answer=named("two"))
    async with open_channel(f"ipv4:127.0.0.1:{one.port},127.0.0.1:{two.port}") as channel:
        stub = TinyStub(channel)

        async def answering(names: set[str]) -> None:
            async def asked() -> set[str]:
                answers = {(await stub.Echo(request())).text for _ in range(6)}
                assert answers == names
                return answers

            found: set[str] = await eventually(asked)
            assert found == names

        await answering({"one", "two"})
        await one.set_serving(serving=False)
        await answering({"two"})
        await one.set_serving(serving=True)
        await answering({"one", "two"})


async def test_a_server_that_is_not_serving_yet_gets_no_call(serve: Serve) -> None:
    server = await serve(serving=False)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        stub = TinyStub(channel)
        with pytest.raises(faults.Unavailable), calling():
            await stub.Echo(request())
        await server.set_serving(serving=True)

        assert (await stub.Echo(request("x"), wait_for_ready=True)).text == "x"


async def test_a_stream_ends_when_its_reader_cancels(connect: Connect) -> None:
    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield EchoResponse(text="first")
        await asyncio.Event().wait()

    call = (await connect(watch=watch)).Watch(request())
    assert (await call.read()).text == "first"
    assert call.cancel()
