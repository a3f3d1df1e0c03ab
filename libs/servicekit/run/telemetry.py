"""W3C trace context as text, for gRPC metadata, message headers and stored rows. Imports only the API, which is cheap.

Immediate work joins the trace of its origin (`servicekit.rpc`). Later work is a trace of its own, linked to its origin
(`linked_trace`), because a trace that lasts for days helps nobody.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    format_span_id,
    format_trace_id,
    get_current_span,
)
from opentelemetry.util.types import Attributes

HEADER = "traceparent"

_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def traceparent() -> str:
    """Returns the current span as text, empty if there is none."""
    span = get_current_span().get_span_context()
    if not span.is_valid:
        return ""
    return f"00-{format_trace_id(span.trace_id)}-{format_span_id(span.span_id)}-{span.trace_flags:02x}"


def parse(text: str) -> SpanContext | None:
    """Parses a text from elsewhere; returns None if it is no trace context."""
    match = _FORM.fullmatch(text)
    if match is None or (match[1] == "00" and match[5]):
        return None
    remote = SpanContext(
        trace_id=int(match[2], 16),
        span_id=int(match[3], 16),
        is_remote=True,
        trace_flags=TraceFlags(int(match[4], 16)),
    )
    return remote if remote.is_valid else None


def links(origins: Iterable[str]) -> list[Link]:
    """Returns a link to each origin that was sampled; links to the others would lead nowhere."""
    return [Link(span) for text in origins if _is_sampled(text) and (span := parse(text))]


@contextmanager
def linked_trace(
    tracer: Tracer,
    name: str,
    origins: Iterable[str] = (),
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes = None,
) -> Iterator[Span]:
    """Starts a new trace, which is sampled if an origin was (see `servicekit.run.providers`)."""
    with tracer.start_as_current_span(
        name, context=Context(), kind=kind, attributes=attributes, links=links(origins)
    ) as span:
        yield span


def _is_sampled(text: str) -> bool:
    """Returns whether the trace is sampled, by the last digit alone, since most are not."""
    return text[-1:] in "13579bdf" and bool(text)
