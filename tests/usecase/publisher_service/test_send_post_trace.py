"""The span of a request to a provider, linked to the call that scheduled the post."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from testkit.eventually import eventually
from testkit.spans import recorded_spans
from tests.usecase.publisher_service.rig import ORGANIZATION, Rig, Start
from topology import publish_subject

SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter:
        yield exporter


def _requests(spans: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == "publish post"]


async def _send(rig: Rig) -> None:
    await rig.save_draft("d1")
    due = rig.clock.now() + timedelta(seconds=1)
    slot = await rig.schedule("d1", due)
    command = rig.command_message("d1", slot, due)
    command.traceparent = SAMPLED
    await rig.client.jetstream().publish(publish_subject(ORGANIZATION, "page"), command.SerializeToString())


async def test_a_request_is_a_client_span_linked_to_its_origin(start: Start, spans: InMemorySpanExporter) -> None:
    async with start() as rig:
        await rig.connect()
        await _send(rig)
        await rig.in_state("PUBLISHED", "d1")
    (span,) = _requests(spans)
    assert span.kind is SpanKind.CLIENT
    assert span.attributes
    assert span.attributes["postflow.provider"] == "sandbox"
    assert span.attributes["postflow.outcome"] == "accepted"
    assert span.status.status_code is StatusCode.UNSET
    assert [f"{link.context.span_id:016x}" for link in span.links] == ["00f067aa0ba902b7"]


async def test_a_request_without_a_published_post_is_an_error(start: Start, spans: InMemorySpanExporter) -> None:
    async with start(unknown_settle=timedelta(seconds=60)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
        await _send(rig)
        job = await rig.in_state("UNKNOWN", "d1")
        await eventually(lambda: bool(_requests(spans)))
    (span,) = _requests(spans)
    assert span.attributes
    assert span.attributes["postflow.outcome"] == "ambiguous"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, job.error_reason)
