"""Sets up the OpenTelemetry SDK of a process, once, for `run_main`; library code sees only the API.

The standard OTEL_* variables govern everything. Without them one trace in a hundred is sampled, nothing is exported,
and metrics are served to Prometheus.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes
from prometheus_client import start_http_server

from servicekit.run import zeros
from servicekit.run.readers import PeriodicReader, PrometheusReader
from servicekit.run.settings import SettingsError

_DEFAULT_RATIO = 0.01
_OTLP_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    metrics_address: str
    tracers: TracerProvider
    meters: MeterProvider

    def shutdown(self) -> None:
        """Exports what is left, unless the collector is unreachable."""
        self.tracers.shutdown()
        self.meters.shutdown(timeout_millis=3000)


def start(service: str, metrics_listen: str, *, variable: str) -> Providers:
    """Starts tracing and metrics. `variable` is the setting of the metrics' address, for error messages."""
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", f"postflow-{service}")})
    tracers = TracerProvider(sampler=_sampler(), resource=resource, shutdown_on_exit=False)
    if _exports("TRACES"):
        _add_otlp_traces(tracers)
    meters = MeterProvider(metric_readers=_readers(), resource=resource, shutdown_on_exit=False)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)
    zeros.add_all()
    return Providers(metrics_address=_serve_metrics(metrics_listen, variable), tracers=tracers, meters=meters)


class LinkSampler(Sampler):
    """Samples a new trace if it is linked to a sampled one, so that a post can be followed over days."""

    def __init__(self, otherwise: Sampler) -> None:
        self._otherwise = otherwise
        self._always = TraceIdRatioBased(1.0)

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        linked = any(link.context.trace_flags.sampled for link in links or ())
        chosen = self._always if linked else self._otherwise
        return chosen.should_sample(parent_context, trace_id, name, kind, attributes, links)

    def get_description(self) -> str:
        return f"LinkSampler{{{self._otherwise.get_description()}}}"


def _sampler() -> Sampler | None:
    """Returns our sampler, or None to leave the choice to the SDK, which reads OTEL_TRACES_SAMPLER."""
    if os.environ.get("OTEL_TRACES_SAMPLER", "parentbased_traceidratio") != "parentbased_traceidratio":
        return None
    text = os.environ.get("OTEL_TRACES_SAMPLER_ARG", str(_DEFAULT_RATIO))
    try:
        return ParentBased(root=LinkSampler(TraceIdRatioBased(float(text))))
    except ValueError:
        raise SettingsError(f"OTEL_TRACES_SAMPLER_ARG: {text!r} is not a ratio from 0 to 1") from None


def _exports(signal: str) -> bool:
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp") == "none" or not any(os.environ.get(it) for it in endpoints):
        return False
    for variable in ("OTEL_EXPORTER_OTLP_PROTOCOL", f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"):
        if os.environ.get(variable, "grpc") != "grpc":
            raise SettingsError(f"{variable}: only grpc is supported")
    return True


def _add_otlp_traces(tracers: TracerProvider) -> None:
    # Imported here: it takes a fifth of a second, which only an exporting process should pay.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_otlp_timeout())))


def _readers() -> list[MetricReader]:
    readers: list[MetricReader] = [PrometheusReader()]
    if _exports("METRICS"):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

        readers.append(PeriodicReader(OTLPMetricExporter(timeout=_otlp_timeout())))
    return readers


def _otlp_timeout() -> float | None:
    """Returns the seconds for one export with its retries; the SDK's default of ten could delay a stop as long."""
    return None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else _OTLP_TIMEOUT


def _serve_metrics(listen: str, variable: str) -> str:
    host, _, port = listen.rpartition(":")
    try:
        server, _thread = start_http_server(int(port), host.strip("[]"))
    except (OSError, OverflowError, ValueError) as error:
        raise SettingsError(f"{variable}: metrics cannot be served on {listen}: {error}") from None
    return f"{host}:{server.server_port}"
