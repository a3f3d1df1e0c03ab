"""The edge around every handler, seen by a caller over a real channel."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from servicekit.faults import Conflict, InvalidField, LimitReached, NotFound, OutOfRange, Refused
from servicekit.rpc import RpcServer, Sizes
from servicekit.run import context
from testkit.eventually import eventually
from testkit.tiny import SERVICE, EchoRequest, EchoResponse, Note, TinyStub, request

Connect = Callable[..., Awaitable[TinyStub]]
Serve = Callable[..., Awaitable[RpcServer]]


async def refused(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def header(error: grpc.aio.AioRpcError, key: str) -> Any:
    return dict(error.trailing_metadata() or ()).get(key)


def details(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    """Returns the packed details by their short type name; a type that comes twice fails the test."""
    status = status_pb2.Status.FromString(header(error, "grpc-status-details-bin"))
    assert (status.code, status.message) == (error.code().value[0], error.details())
    found: dict[str, Any] = {}
    for packed in status.details:
        name = packed.TypeName().rpartition(".")[2]
        assert name not in found
        found[name] = getattr(error_details_pb2, name)()
        packed.Unpack(found[name])
    return found


def raising(error: BaseException) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def answer(_request: Any, _context: Any) -> Any:
        raise error

    return answer


async def test_an_answer_comes_back(connect: Connect) -> None:
    stub = await connect()
    assert (await stub.Echo(request("hello"))).text == "hello"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (NotFound("NOTE_NOT_FOUND", "no such note", metadata={"note": "n1"}), grpc.StatusCode.NOT_FOUND),
        (Conflict("ETAG_MISMATCH", "changed since"), grpc.StatusCode.ABORTED),
        (Refused("CLOSED", "it is closed"), grpc.StatusCode.FAILED_PRECONDITION),
        (OutOfRange("EXPIRED", "it is not kept any more"), grpc.StatusCode.OUT_OF_RANGE),
    ],
)
async def test_a_fault_is_its_code_with_one_error_info(connect: Connect, fault: Any, code: grpc.StatusCode) -> None:
    error = await refused((await connect(answer=raising(fault))).Echo(request()))
    assert (error.code(), error.details()) == (code, fault.message)
    found = details(error)
    assert set(found) == {"ErrorInfo"}
    assert (found["ErrorInfo"].reason, found["ErrorInfo"].domain) == (fault.reason, "postflow")
    assert dict(found["ErrorInfo"].metadata) == fault.metadata


async def test_a_limit_says_when_to_retry(connect: Connect) -> None:
    fault = LimitReached("CAP_REACHED", "enough for today", retry_after=timedelta(seconds=90, milliseconds=5))
    found = details(await refused((await connect(answer=raising(fault))).Echo(request())))
    assert set(found) == {"ErrorInfo", "RetryInfo"}
    assert found["RetryInfo"].retry_delay.ToTimedelta() == fault.retry_after


async def test_an_invalid_field_is_named(connect: Connect) -> None:
    error = await refused((await connect(answer=raising(InvalidField("text", "too rude")))).Echo(request()))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    (violation,) = details(error)["BadRequest"].field_violations
    assert (violation.field, violation.description) == ("text", "too rude")


async def test_all_broken_field_rules_are_reported_before_the_handler(connect: Connect) -> None:
    stub = await connect(answer=raising(AssertionError("the handler ran")))
    broken = EchoRequest(organization_id="a b", text="\0", note=Note(title="x" * 11))
    broken.update_mask.paths[:] = ["title", "colour"]
    error = await refused(stub.Echo(broken))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    found = details(error)
    assert set(found) == {"ErrorInfo", "BadRequest"}
    assert found["ErrorInfo"].reason == "INVALID_FIELD"
    fields = [violation.field for violation in found["BadRequest"].field_violations]
    assert fields == ["organization_id", "text", "note.title", "update_mask"]
    assert "'colour'" in found["BadRequest"].field_violations[3].description


async def test_violations_that_do_not_fit_into_a_status_are_counted(connect: Connect) -> None:
    stub = await connect()
    masked = request(note=Note(title="x"))
    masked.update_mask.paths[:] = [f"field_{number}" + "x" * 100 for number in range(200)]
    error = await refused(stub.Echo(masked))
    violations = details(error)["BadRequest"].field_violations
    left = re.search(r"\(and (\d+) more\)$", violations[-1].description)
    assert left
    assert len(violations) + int(left[1]) == 200


@pytest.mark.parametrize("method", ["Echo", "Watch"])
@pytest.mark.parametrize("raw", [b"\xff\xff\xff", b"\x0a\x05ab", b"\x12\x03\xed\xa0\x80", b"\x12\x01\xff"])
async def test_bytes_that_do_not_decode_are_a_malformed_request(serve: Serve, method: str, raw: bytes) -> None:
    server = await serve()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
        error = await refused(call(raw))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(error)["ErrorInfo"].reason == "MALFORMED_REQUEST"
    assert "tiny" not in str(error.details())


@pytest.mark.parametrize(
    "defect",
    [
        ValueError("secret detail"),
        KeyError("secret detail"),
        NotImplementedError("secret detail"),
        ExceptionGroup("secret detail", [NotFound("X", "secret detail"), ValueError("secret detail")]),
        NotFound("BROKEN", "secret detail", metadata={"count": 7}),  # type: ignore[dict-item]
    ],
)
async def test_the_text_of_a_defect_stays_with_us(
    connect: Connect, caplog: pytest.LogCaptureFixture, defect: Exception
) -> None:
    error = await refused((await connect(answer=raising(defect))).Echo(request(), metadata=[("x-request-id", "r-1")]))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert error.details() == "internal error; request id r-1"
    assert header(error, "grpc-status-details-bin") is None
    assert "secret" not in repr(error)
    assert "secret detail" in caplog.text


async def test_the_text_of_a_defect_in_a_stream_stays_with_us(connect: Connect) -> None:
    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield EchoResponse(text="one")
        raise ValueError("secret detail")

    call = (await connect(watch=watch)).Watch(request())
    assert (await call.read()).text == "one"
    error = await refused(call.read())
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in repr(error)


async def test_an_answer_of_the_wrong_type_is_a_defect(connect: Connect) -> None:
    async def answer(_request: Any, _context: Any) -> None:
        return None

    error = await refused((await connect(answer=answer)).Echo(request()))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "NoneType" not in repr(error)


async def test_the_fault_of_a_task_group_comes_out_as_itself(connect: Connect) -> None:
    async def answer(_request: Any, _context: Any) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(raising(NotFound("NOTE_NOT_FOUND", "no such note"))(None, None))

    error = await refused((await connect(answer=answer)).Echo(request()))
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_an_unreachable_dependency_is_unavailable_without_its_text(connect: Connect) -> None:
    error = await refused((await connect(answer=raising(ConnectionRefusedError("secret host")))).Echo(request()))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert details(error)["ErrorInfo"].reason == "DEPENDENCY_UNAVAILABLE"
    assert "secret" not in repr(error)


async def test_a_method_without_an_implementation_is_unimplemented(connect: Connect) -> None:
    error = await refused((await connect()).Forgotten(request()))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_handler_may_abort_by_itself(connect: Connect) -> None:
    async def answer(_request: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.DATA_LOSS, "gone")

    error = await refused((await connect(answer=answer)).Echo(request()))
    assert (error.code(), error.details()) == (grpc.StatusCode.DATA_LOSS, "gone")


async def test_a_message_over_the_limit_is_refused_before_a_handler_runs(serve: Serve) -> None:
    server = await serve(answer=raising(AssertionError("the handler ran")))
    big = request("x" * 256 * 1024).SerializeToString()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call: Any = channel.unary_unary(f"/{SERVICE}/Echo")
        error = await refused(call(big))
        huge = await refused(call(big * 4))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(error)["ErrorInfo"].reason == "REQUEST_TOO_LARGE"
    assert huge.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_an_answer_over_the_limit_says_so(connect: Connect) -> None:
    async def answer(_request: Any, _context: Any) -> Any:
        return EchoResponse(text="x" * 256 * 1024)

    error = await refused((await connect(answer=answer)).Echo(request()))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details(error)["ErrorInfo"].reason == "RESPONSE_TOO_LARGE"


async def test_a_method_may_have_larger_messages(serve: Serve, connect: Connect) -> None:
    async def answer(given: Any, _context: Any) -> Any:
        return EchoResponse(text=given.text * 2)

    sizes = {f"{SERVICE}/Echo": Sizes(request=400 * 1024, answer=700 * 1024)}
    stub = await connect(answer=answer, options={"sizes": sizes})
    assert len((await stub.Echo(request("x" * 300 * 1024))).text) == 600 * 1024
    error = await refused(stub.Echo(request("x" * 390 * 1024)))
    assert details(error)["ErrorInfo"].reason == "RESPONSE_TOO_LARGE"
    error = await refused(stub.Echo(request("x" * 400 * 1024)))
    assert details(error)["ErrorInfo"].reason == "REQUEST_TOO_LARGE"
    with pytest.raises(ValueError, match="sizes for methods that do not exist: "):
        await serve(options={"sizes": {f"{SERVICE}/Eco": Sizes()}})


@pytest.mark.parametrize("text", ["line\r\nbreak", "\ud800 lone", "ü" * 5000, "\x1b[31m"])
async def test_any_text_reaches_the_caller(connect: Connect, text: str) -> None:
    fault = Refused("CLOSED", text, metadata={"why": text, "then": text})
    error = await refused((await connect(answer=raising(fault))).Echo(request()))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert details(error)["ErrorInfo"].reason == "CLOSED"


async def test_a_call_without_a_request_id_gets_one(connect: Connect) -> None:
    call = (await connect()).Echo(request())
    await call
    assert re.fullmatch(r"[0-9a-f-]{36}", dict(await call.trailing_metadata())["x-request-id"])


async def test_an_error_carries_the_callers_own_request_id(connect: Connect) -> None:
    stub = await connect(answer=raising(Refused("CLOSED", "no")))
    error = await refused(stub.Echo(request(), metadata=[("x-request-id", "r-77")]))
    assert header(error, "x-request-id") == "r-77"


async def test_an_invalid_request_id_is_replaced(connect: Connect) -> None:
    call = (await connect()).Echo(request(), metadata=[("x-request-id", "with spaces " * 40)])
    await call
    assert re.fullmatch(r"[0-9a-f-]{36}", dict(await call.trailing_metadata())["x-request-id"])


async def test_a_stream_returns_its_request_id_before_the_first_answer(connect: Connect) -> None:
    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield

    call = (await connect(watch=watch)).Watch(request(), metadata=[("x-request-id", "r-78")])
    assert dict(await call.initial_metadata())["x-request-id"] == "r-78"
    call.cancel()


async def test_a_call_without_a_deadline_gets_that_of_its_method(serve: Serve) -> None:
    seen: list[asyncio.CancelledError] = []

    async def answer(_request: Any, _context: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            seen.append(error)
            raise

    server = await serve(answer=answer, options={"deadlines": {f"{SERVICE}/Echo": timedelta(milliseconds=50)}})
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        error = await refused(TinyStub(channel).Echo(request()))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert details(error)["ErrorInfo"].reason == "DEADLINE_EXCEEDED"
    assert seen


async def test_by_default_a_unary_call_has_ten_seconds_and_a_stream_no_end(serve: Serve) -> None:

    async def answer(_request: Any, _context: Any) -> Any:
        return EchoResponse(text=str(context.deadline.get() is not None))

    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield EchoResponse(text=str(context.deadline.get() is not None))

    server = await serve(answer=answer, watch=watch)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = TinyStub(channel)
        assert (await stub.Echo(request())).text == "True"
        assert (await stub.Watch(request()).read()).text == "False"


async def test_a_deadline_for_an_unknown_method_is_refused_at_once(serve: Serve) -> None:
    with pytest.raises(ValueError, match="TinyService/Eco"):
        await serve(options={"deadlines": {f"{SERVICE}/Eco": None}})


@pytest.mark.parametrize("method", ["Echo", "Watch"])
async def test_cancellation_reaches_the_handler(connect: Connect, method: str) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def watch(given: Any, context: Any) -> AsyncIterator[Any]:
        yield await answer(given, context)

    call = getattr(await connect(answer=answer, watch=watch), method)(request())
    async with asyncio.timeout(10):
        await began.wait()
        call.cancel()
        await ended.wait()


async def test_cancelling_the_waiting_task_reaches_the_handler(connect: Connect) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    stub = await connect(answer=answer)

    async def wait() -> None:
        await stub.Echo(request())

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(wait())
        await began.wait()
        waiting.cancel()
        await ended.wait()


async def test_an_expired_deadline_of_the_caller_reaches_the_handler(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ended = asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    error = await refused((await connect(answer=answer)).Echo(request(), timeout=0.3))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with asyncio.timeout(10):
        await ended.wait()
    await eventually(lambda: [line for line in access_log(caplog) if line["code"] == "DEADLINE_EXCEEDED"])


def access_log(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__ for record in caplog.records if record.name == "servicekit.rpc.access"]
