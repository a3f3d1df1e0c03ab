"""Compares what is exported of our histograms with what the SDK exports of its own."""

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader
from prometheus_client import CollectorRegistry, generate_latest

from servicekit.run.histograms import Histogram
from servicekit.run.readers import PrometheusReader, WithHistograms

BOUNDS = [0, 0.25, 1, 5]
VALUES = [(0.0, "a"), (0.5, "a"), (5.0, "a"), (7.25, "b")]
ABOUT: dict[str, Any] = {"unit": "s", "description": "Waits of a test"}


class InMemoryReader(WithHistograms, InMemoryMetricReader):
    pass


@pytest.fixture(scope="module", autouse=True)
def histogram() -> Histogram:
    """Makes the only histogram of this name: all that a process has made are exported."""
    made = Histogram("test.readers.wait", scope="tests", bounds=BOUNDS, labels=["queue"], **ABOUT)
    for value, queue in VALUES:
        made.record(value, queue)
    return made


def provider(reader: MetricReader) -> MeterProvider:
    made = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    made.get_meter("tests").create_counter("test.readers.posts", description="Posts of a test").add(1)
    return made


def record_in_sdk(meters: MeterProvider) -> None:
    made = meters.get_meter("tests").create_histogram(
        "test.readers.wait", explicit_bucket_boundaries_advisory=BOUNDS, **ABOUT
    )
    for value, queue in VALUES:
        made.record(value, {"queue": queue})


def found(reader: InMemoryMetricReader, name: str) -> Any:
    data = reader.get_metrics_data()
    assert data is not None
    (resource,) = data.resource_metrics
    ((scope, metric),) = [
        (scope, metric) for scope in resource.scope_metrics for metric in scope.metrics if metric.name == name
    ]
    points: Any = [replace(point, start_time_unix_nano=0, time_unix_nano=0) for point in metric.data.data_points]
    return scope.scope, scope.schema_url, replace(metric, data=replace(metric.data, data_points=points))


def lines(registry: CollectorRegistry) -> list[str]:
    return sorted(line for line in generate_latest(registry).decode().splitlines() if "test_readers" in line)


def test_the_points_are_those_of_the_sdk(histogram: Histogram) -> None:
    reader, of_the_sdk = InMemoryReader(), InMemoryMetricReader()
    provider(reader)
    record_in_sdk(provider(of_the_sdk))
    assert found(reader, histogram.name) == found(of_the_sdk, histogram.name)
    assert found(reader, "test.readers.posts") == found(of_the_sdk, "test.readers.posts")


def test_prometheus_shows_what_the_sdk_shows() -> None:
    registry, of_the_sdk = CollectorRegistry(), CollectorRegistry()
    provider(PrometheusReader(registry=registry))
    record_in_sdk(provider(PrometheusMetricReader(registry=of_the_sdk)))
    assert lines(registry) == lines(of_the_sdk)
    assert "# TYPE test_readers_wait_seconds histogram" in lines(registry)
