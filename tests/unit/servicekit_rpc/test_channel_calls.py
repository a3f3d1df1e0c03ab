"""Deadlines and metadata that our channel adds, seen by gRPC's test channel and a recording multi-callable."""

import time
from collections.abc import Iterator
from typing import Any

import grpc_testing
import pytest
from opentelemetry.context import attach, detach
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from servicekit.rpc.channel import _Calls, _Channel
from servicekit.run import context, telemetry
from testkit.tiny import SERVICE, EchoRequest, EchoResponse, request

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def within_a_call() -> Iterator[None]:
    """Simulates that a call with three seconds left is being served."""
    tokens = [(context.request_id, context.request_id.set("r-1"))]
    deadline = context.deadline.set(time.monotonic() + 3)
    caller = telemetry.parse(TRACE)
    assert caller
    trace = attach(set_span_in_context(NonRecordingSpan(caller)))
    yield
    detach(trace)
    context.deadline.reset(deadline)
    for variable, token in tokens:
        variable.reset(token)


def recorded(deadline: float | None, **options: Any) -> dict[str, Any]:
    def record(_request: Any, **seen: Any) -> dict[str, Any]:
        return seen

    seen: dict[str, Any] = _Calls(record, deadline)(request(), **options)
    return seen


@pytest.mark.usefixtures("within_a_call")
def test_a_call_carries_request_id_and_trace_next_to_its_own_metadata() -> None:
    service = EchoRequest.DESCRIPTOR.file.services_by_name["TinyService"]
    fake = grpc_testing.channel([service], grpc_testing.strict_fake_time(0))
    watch = _Channel(fake, 10.0).unary_stream(
        f"/{SERVICE}/Watch", EchoRequest.SerializeToString, EchoResponse.FromString
    )
    watch(request("hi"), metadata=[("own", "kept")])
    metadata, given, _ = fake.take_unary_stream(service.methods_by_name["Watch"])
    assert {("own", "kept"), ("x-request-id", "r-1"), ("traceparent", TRACE)} <= set(metadata)
    assert given == request("hi")


def test_outside_of_a_call_only_the_default_deadline_is_added() -> None:
    assert recorded(10.0) == {"timeout": 10.0, "metadata": ()}


def test_a_timeout_of_the_call_overrides_the_default() -> None:
    assert recorded(10.0, timeout=25.0)["timeout"] == 25.0


def test_a_stream_has_no_deadline_by_itself() -> None:
    assert recorded(None)["timeout"] is None


@pytest.mark.usefixtures("within_a_call")
@pytest.mark.parametrize("deadline", [10.0, None])
def test_no_call_outlasts_the_one_that_it_serves(deadline: float | None) -> None:
    assert 0 < recorded(deadline)["timeout"] <= 3


@pytest.mark.usefixtures("within_a_call")
def test_a_shorter_timeout_stays() -> None:
    assert recorded(10.0, timeout=0.5)["timeout"] == 0.5


def test_a_call_made_too_late_fails_at_once() -> None:
    token = context.deadline.set(time.monotonic() - 1)
    assert recorded(10.0)["timeout"] == 0.0
    context.deadline.reset(token)
