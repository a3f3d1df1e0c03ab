"""Calls to other services. The channel adds a deadline, the request id and the trace context to every call.

It wraps the multi-callables instead of using client interceptors, which put a task between the caller and the call:
that costs time, and has kept cancellations from reaching the server.
"""

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

import grpc

from servicekit.rpc.edge import MAX_SENT_BYTES, MAX_TAKEN_BYTES
from servicekit.rpc.observe import REQUEST_ID_KEY
from servicekit.run import context, telemetry, transient

DEFAULT_DEADLINE = timedelta(seconds=10)

# Every method may be retried: reads change nothing, and our own mutating calls always carry a request_id, so that a
# repeat gets the first answer, even if that was lost on the way.
SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": ""},
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 3,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
    # Stops retrying while more than half of the calls fail.
    "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.5},
}

_OPTIONS: Sequence[tuple[str, str | int]] = (
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    ("grpc.max_receive_message_length", MAX_SENT_BYTES),
    ("grpc.max_send_message_length", MAX_TAKEN_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Finds a restarted server within a second or two, instead of gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
)


def open_channel(target: str, *, deadline: timedelta = DEFAULT_DEADLINE) -> grpc.aio.Channel:
    """Opens a channel to `target` ("host:port", "dns:///host:port"), which connects by itself, also after failures.

    A unary call without a timeout gets `deadline`, and no call gets more than what is left of the call that it serves.
    """
    return _Channel(grpc.aio.insecure_channel(target, options=_OPTIONS), deadline.total_seconds())


class _Channel(grpc.aio.Channel):
    def __init__(self, inner: grpc.aio.Channel, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        return _Calls(self._inner.unary_unary(method, *args, **options), self._deadline)

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        return _Calls(self._inner.unary_stream(method, *args, **options), None)

    def stream_unary(self, method: str, *args: Any, **options: Any) -> Any:
        return _Calls(self._inner.stream_unary(method, *args, **options), None)

    def stream_stream(self, method: str, *args: Any, **options: Any) -> Any:
        return _Calls(self._inner.stream_stream(method, *args, **options), None)

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()

    async def __aenter__(self) -> "_Channel":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Calls:
    """A multi-callable of any of the four kinds, which returns gRPC's own call."""

    __slots__ = ("_deadline", "_inner")

    def __init__(self, inner: Any, deadline: float | None) -> None:
        self._inner = inner
        self._deadline = deadline

    def __call__(self, *args: Any, timeout: float | None = None, metadata: Any = None, **options: Any) -> Any:
        seconds = _left(self._deadline if timeout is None else timeout)
        return self._inner(*args, timeout=seconds, metadata=(*(metadata or ()), *_carried()), **options)


def _left(wanted: float | None) -> float | None:
    ends = context.deadline.get()
    if ends is None:
        return wanted
    left = max(ends - time.monotonic(), 0.0)
    return left if wanted is None else min(wanted, left)


def _carried() -> list[tuple[str, str]]:
    carried = []
    if request_id := context.request_id.get():
        carried.append((REQUEST_ID_KEY, request_id))
    if trace := telemetry.traceparent():
        carried.append((telemetry.HEADER, trace))
    return carried


def _is_unreachable(error: BaseException) -> bool:
    return isinstance(error, grpc.aio.AioRpcError) and error.code() in {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }


transient.recognise(_is_unreachable)
