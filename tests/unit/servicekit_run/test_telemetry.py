import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from servicekit.run import telemetry
from servicekit.run.providers import LinkSampler

ORIGIN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = ORIGIN[:-1] + "0"


def tracing(*, sampler: LinkSampler | None = None) -> tuple[TracerProvider, InMemorySpanExporter]:
    provider, exporter = TracerProvider(sampler=sampler, shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_the_current_span_survives_as_text() -> None:
    provider, _ = tracing()
    with provider.get_tracer("test").start_as_current_span("here") as span:
        read = telemetry.parse(telemetry.traceparent())
    here = span.get_span_context()
    assert read
    assert read.is_remote
    assert (read.trace_id, read.span_id, read.trace_flags) == (here.trace_id, here.span_id, here.trace_flags)


def test_without_a_span_the_text_is_empty() -> None:
    assert telemetry.traceparent() == ""


def test_later_work_is_a_trace_linked_to_its_origin() -> None:
    provider, exporter = tracing()
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("unrelated"), telemetry.linked_trace(tracer, "send", [ORIGIN, "", "nonsense"]):
        pass
    span = exporter.get_finished_spans()[0]
    assert span.parent is None
    assert f"{span.context.trace_id:032x}" not in ORIGIN
    (link,) = span.links
    assert f"{link.context.span_id:016x}" == "00f067aa0ba902b7"


def test_an_unsampled_origin_is_not_linked() -> None:
    assert telemetry.links([UNSAMPLED]) == []


def test_later_work_is_sampled_if_its_origin_was() -> None:
    provider, exporter = tracing(sampler=LinkSampler(ParentBased(root=ALWAYS_OFF)))
    tracer = provider.get_tracer("test")
    with telemetry.linked_trace(tracer, "followed", [UNSAMPLED, ORIGIN]):
        pass
    with telemetry.linked_trace(tracer, "not followed", [UNSAMPLED]):
        pass
    assert [span.name for span in exporter.get_finished_spans()] == ["followed"]


@pytest.mark.parametrize("flags", ["00", "01", "02", "03", "ff"])
def test_only_the_lowest_bit_says_that_a_trace_was_sampled(flags: str) -> None:
    assert bool(telemetry.links([ORIGIN[:-2] + flags])) == bool(int(flags, 16) & 1)


HEX = "0123456789abcdef"
headers = st.one_of(
    st.text(max_size=80),
    st.builds(
        "-".join,
        st.tuples(
            st.sampled_from(["00", "01", "ff", "0g"]),
            st.text(HEX, min_size=32, max_size=32) | st.just("0" * 32) | st.just("1" * 31),
            st.text(HEX, min_size=16, max_size=16) | st.just("0" * 16),
            st.text(HEX, min_size=2, max_size=2),
        ),
    ),
)


@given(headers)
def test_a_header_is_read_as_opentelemetry_reads_it(text: str) -> None:
    theirs = TraceContextTextMapPropagator().extract({"traceparent": text})
    assert bool(telemetry.parse(text)) == bool(theirs)
