"""Observes calls on the server: a span, the duration by method and code, a line in the access log.

Written by us: the contrib instrumentation costs several times as much, breaks Health/Watch and misreports codes.
"""

import logging
import re
import time
from typing import Any

import grpc
from opentelemetry import trace
from opentelemetry.context import Context, attach
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, Span, SpanKind, StatusCode, set_span_in_context

from servicekit.ids import IdSource
from servicekit.run import context, telemetry
from servicekit.run.histograms import Histogram

REQUEST_ID_KEY = "x-request-id"

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_DEFECTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})

_NOTHING = Context()

_log = logging.getLogger("servicekit.rpc.access")
_tracer = trace.get_tracer(__name__)
_duration = Histogram(
    "rpc.server.call.duration",
    scope=__name__,
    unit="s",
    description="Time from the arrival of a call to its answer.",
    labels=["rpc.method", "rpc.response.status_code"],
    bounds=[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
)


class Seen:
    """The labels of a method, the same for each of its calls."""

    def __init__(self, service: str, method: str, *, is_own: bool = True) -> None:
        """`is_own` is false for health and reflection, which are asked all day: no spans, and lines for debugging."""
        self.name = f"{service}/{method}"
        self.log_level = logging.INFO if is_own else logging.DEBUG
        self.is_traced = is_own
        self.span = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}


class Call:
    """One call. Each has its own task and context, so that values set here end with it."""

    __slots__ = ("_context", "_method", "_span", "_started", "is_named_by_us", "request_id")

    def __init__(self, method: Seen, rpc: "grpc.aio.ServicerContext[Any, Any]", ids: IdSource) -> None:
        self._started = time.perf_counter()
        self._method = method
        self._context = rpc
        request_id = parent = ""
        for key, value in rpc.invocation_metadata() or ():
            if key == REQUEST_ID_KEY and isinstance(value, str) and _REQUEST_ID.fullmatch(value):
                request_id = value
            elif key == telemetry.HEADER and isinstance(value, str):
                parent = value
        # Metadata costs a tenth of a small call, so the caller's own request id is returned only in an error.
        self.is_named_by_us = not request_id
        self.request_id = request_id or ids.new()
        context.request_id.set(self.request_id)
        self._span = _begin_span(method, parent)

    def end(self, code: str, reason: str = "", field: str = "") -> None:
        seconds = time.perf_counter() - self._started
        _duration.record(seconds, self._method.name, code)
        if self._span.is_recording():
            self._describe(code, reason)
        self._span.end()
        if _log.isEnabledFor(self._method.log_level):
            self._write(code, reason, field, seconds)

    def _describe(self, code: str, reason: str) -> None:
        self._span.set_attributes(
            {"rpc.grpc.status_code": grpc.StatusCode[code].value[0], "postflow.request_id": self.request_id}
        )
        if organization_id := context.organization_id.get():
            self._span.set_attribute("postflow.organization_id", organization_id)
        if code in _DEFECTS:
            self._span.set_status(StatusCode.ERROR, reason or code)

    def _write(self, code: str, reason: str, field: str, seconds: float) -> None:
        fields = {
            "method": self._method.name,
            "code": code,
            "duration_ms": round(seconds * 1000, 2),
            "peer": self._context.peer(),
        }
        if reason:
            fields["reason"] = reason
        if field:
            fields["field"] = field
        _log.log(self._method.log_level, "call", extra=fields)


def _begin_span(method: Seen, traceparent: str) -> Span:
    """Makes the span of the call current. A trace that the caller did not sample is only passed on."""
    remote = telemetry.parse(traceparent) if traceparent else None
    parent: Span = NonRecordingSpan(remote) if remote else INVALID_SPAN
    joined = set_span_in_context(parent, _NOTHING)
    if not method.is_traced or (remote and not remote.trace_flags.sampled):
        attach(joined)
        return parent
    span = _tracer.start_span(method.name, context=joined, kind=SpanKind.SERVER, attributes=method.span)
    attach(set_span_in_context(span, _NOTHING))
    return span
