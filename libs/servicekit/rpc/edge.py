"""The edge of a server, one layer around each handler: decode, validate, limit the time, answer or refuse, observe.

It is one of the places that catch every exception. Anything but a Fault leaves as a bare INTERNAL with the request id;
its text goes only to our log.
"""

import asyncio
import inspect
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from servicekit.faults import DeadlineExceeded, Fault, InvalidRequest, LimitReached, Unavailable
from servicekit.ids import IdSource
from servicekit.rpc.observe import REQUEST_ID_KEY, Call, Seen
from servicekit.rpc.status import Refusal, refusal_of
from servicekit.rpc.validation import Validator
from servicekit.run import context
from servicekit.run.transient import is_transient

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
T = TypeVar("T")

MAX_MESSAGE_BYTES = 256 * 1024
# The limits of the transport. We refuse a message that its method does not allow with a reason, gRPC one above these
# without. Clients of gRPC take answers of 4 MiB by default.
MAX_TAKEN_BYTES = 4 * MAX_MESSAGE_BYTES
MAX_SENT_BYTES = 16 * MAX_MESSAGE_BYTES
# A longer deadline is cut to this.
LONGEST_CALL = timedelta(minutes=10)

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_log = logging.getLogger(__name__)


class Sizes(NamedTuple):
    """The most bytes in a method's request, and in its answer, each up to the limit of the transport."""

    request: int = MAX_MESSAGE_BYTES
    answer: int = MAX_MESSAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    seen: Seen
    decode: Callable[[bytes], Message]
    encode: Callable[[Message], bytes]
    validate: Validator
    has_organization: bool
    default_deadline: timedelta | None  # of a call without one; None: no limit
    sizes: Sizes


class Edge:
    """The state that all handlers of one server share."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._streams: set[asyncio.Timeout] = set()
        self._is_stopping = False

    def guard(self, method: Method, handler: Handler) -> Handler:
        """Returns the handler with the edge around it."""
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(self._unary(method, handler.unary_unary))
        read, encode = _reader(method), _encoder(method)
        if handler.unary_stream:
            answer = self._stream(method, handler.unary_stream, read)
            return grpc.unary_stream_rpc_method_handler(answer, response_serializer=encode)
        if handler.stream_stream:
            answer = self._stream(method, handler.stream_stream, _unchanged)
            return grpc.stream_stream_rpc_method_handler(answer, request_deserializer=read, response_serializer=encode)
        raise TypeError(f"{method.seen.name}: a stream of requests with one answer is not supported")

    def end_streams(self) -> None:
        """Ends the streams in flight, which may have no end of their own; their readers then connect elsewhere."""
        self._is_stopping = True
        for scope in self._streams:
            scope.reschedule(asyncio.get_running_loop().time())

    def _unary(self, method: Method, behavior: Callable[..., Awaitable[Message]]) -> Callable[..., Any]:
        read, encode = _reader(method), _encoder(method)

        async def answer(raw: bytes, rpc: Context) -> bytes:
            call = Call(method.seen, rpc, self._ids)
            try:
                limit = _limit(method, rpc)
                request = read(raw)
                working = behavior(request, rpc)
                encoded = encode(await (working if limit is None else _within(limit, working)))
            except BaseException as error:  # noqa: BLE001 - the edge
                await _refuse(call, rpc, error)
            if call.is_named_by_us:
                rpc.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id),))
            call.end("OK")
            return encoded

        return answer

    def _stream(self, method: Method, behavior: Callable[..., Any], read: Callable[[Any], Any]) -> Callable[..., Any]:
        pump = _pump if inspect.isasyncgenfunction(behavior) else _hand_over

        async def answer(source: Any, rpc: Context) -> None:
            call = Call(method.seen, rpc, self._ids)
            try:
                limit = _limit(method, rpc)
                request = read(source)
                # Sent now, since the first answer may take long.
                await rpc.send_initial_metadata(((REQUEST_ID_KEY, call.request_id),))
                await self._until_stopped(limit, pump(behavior, request, rpc))
            except BaseException as error:  # noqa: BLE001 - the edge
                await _refuse(call, rpc, error)
            call.end("OK")

        return answer

    async def _until_stopped(self, limit: float | None, working: Awaitable[None]) -> None:
        scope = asyncio.timeout(limit)
        try:
            async with scope:
                self._streams.add(scope)
                await working
        except TimeoutError as error:
            if scope.expired() and self._is_stopping:
                raise Unavailable("SERVER_STOPPING", "this server is stopping; try again") from None
            raise _expiry(scope, error) from None
        finally:
            self._streams.discard(scope)


async def _pump(behavior: Callable[..., AsyncIterator[Message]], request: Any, rpc: Context) -> None:
    async with aclosing(behavior(request, rpc)) as responses:  # type: ignore[type-var]
        async for response in responses:
            await rpc.write(response)


async def _hand_over(behavior: Callable[..., Awaitable[None]], request: Any, rpc: Context) -> None:
    """Runs a handler that writes its answers by itself, such as Health/Watch."""
    await behavior(request, rpc)


def _reader(method: Method) -> Callable[[bytes], Message]:
    def read(raw: bytes) -> Message:
        if len(raw) > (most := method.sizes.request):
            raise InvalidRequest("REQUEST_TOO_LARGE", f"the request has {len(raw)} bytes, {most} at most")
        try:
            request = method.decode(raw)
        except DecodeError:
            raise InvalidRequest("MALFORMED_REQUEST", "the bytes do not decode to the request's type") from None
        if method.has_organization:
            context.organization_id.set(_loggable(request.organization_id))  # type: ignore[attr-defined]
        method.validate(request)
        return request

    return read


def _loggable(organization_id: str) -> str:
    """Returns the id, or nothing if it is none: the request is not validated yet, and logs and spans need ids."""
    return organization_id if _ID.fullmatch(organization_id) else ""


def _encoder(method: Method) -> Callable[[Message], bytes]:
    def encode(response: Message) -> bytes:
        encoded = method.encode(response)
        if len(encoded) > (most := method.sizes.answer):
            raise LimitReached("RESPONSE_TOO_LARGE", f"the answer exceeds {most} bytes; ask for less")
        return encoded

    return encode


def _unchanged(requests: Any) -> Any:
    return requests


def _limit(method: Method, rpc: Context) -> float | None:
    """Returns the seconds after which we must end the call; gRPC ends it at the caller's own deadline."""
    given: float | None = rpc.time_remaining()
    allowed = method.default_deadline if given is None else LONGEST_CALL
    seconds = allowed.total_seconds() if allowed else None
    if given is not None and seconds is not None and given <= seconds:
        seconds, limit = given, None
    else:
        limit = seconds
    if seconds is not None:
        context.deadline.set(time.monotonic() + seconds)
    return limit


async def _within(seconds: float, working: Awaitable[T]) -> T:
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            return await working
    except TimeoutError as error:
        raise _expiry(scope, error) from None


def _expiry(scope: asyncio.Timeout, error: TimeoutError) -> Exception:
    """Returns our own timeout as a fault; a timeout inside the handler stays what it is."""
    return DeadlineExceeded("DEADLINE_EXCEEDED", "the call did not end in time") if scope.expired() else error


async def _refuse(call: Call, rpc: Context, error: BaseException) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):  # the handler has refused by itself
        call.end(rpc.code().name)
        raise error
    if isinstance(error, asyncio.CancelledError) or _is_hang_up(error):
        call.end("DEADLINE_EXCEEDED" if rpc.time_remaining() == 0 else "CANCELLED")
        raise error
    if not isinstance(error, Exception):
        raise error
    refusal = _refusal_of(error, call, rpc)
    rpc.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id), *refusal.metadata))
    call.end(refusal.code.name, refusal.reason, refusal.field)
    await rpc.abort(refusal.code, refusal.message)


def _is_hang_up(error: BaseException) -> bool:
    """Returns whether gRPC could not write, because the client is gone or the server stopped."""
    return isinstance(error, grpc.aio.BaseError) and not isinstance(error, grpc.aio.UsageError)


def _refusal_of(error: Exception, call: Call, rpc: Context) -> Refusal:
    if isinstance(error, NotImplementedError) and rpc.code() is grpc.StatusCode.UNIMPLEMENTED:
        # The generated servicer's answer for a method without an implementation.
        return Refusal(code=grpc.StatusCode.UNIMPLEMENTED, message="not implemented", reason="")
    try:
        if fault := _fault_in(error):
            return refusal_of(fault)
    except Exception:  # noqa: BLE001 - a fault that cannot be encoded must not leak either
        _log.exception("a fault cannot be encoded")
    _log.error("unhandled exception", exc_info=error)
    message = f"internal error; request id {call.request_id}"
    return Refusal(code=grpc.StatusCode.INTERNAL, message=message, reason=type(error).__name__)


def _fault_in(error: Exception) -> Fault | None:
    """Returns the fault, the first of those that a TaskGroup collected, or Unavailable for a transient error."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, ExceptionGroup):
        faults = [_fault_in(one) for one in error.exceptions]
        return faults[0] if all(faults) else None
    if is_transient(error):
        _log.warning("a dependency is unreachable: %r", error)
        return Unavailable("DEPENDENCY_UNAVAILABLE", "a dependency of this call is unreachable; try again")
    return None
