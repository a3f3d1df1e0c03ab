"""Readers of metrics, which export our histograms (`servicekit.run.histograms`) beside the instruments of the SDK."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    HistogramDataPoint,
    Metric,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
    ScopeMetrics,
)
from opentelemetry.sdk.metrics.export import Histogram as Points
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from servicekit.clock import wall_nanoseconds
from servicekit.run.histograms import Histogram, all_made


class WithHistograms(MetricReader):
    """Adds the histograms to what a reader of the SDK receives. That reader is the next base class."""

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        super()._receive_metrics(added(metrics_data, all_made()), timeout_millis, **kwargs)  # type: ignore[safe-super]


class PrometheusReader(WithHistograms, PrometheusMetricReader):
    pass


class PeriodicReader(WithHistograms, PeriodicExportingMetricReader):
    pass


def added(data: MetricsData, histograms: Sequence[Histogram]) -> MetricsData:
    """Returns the data with the histograms that have a value. A process has one resource."""
    (resource,) = data.resource_metrics
    scopes = [*resource.scope_metrics, *_scopes(histograms)]
    return MetricsData(resource_metrics=[replace(resource, scope_metrics=scopes)])


def _scopes(histograms: Sequence[Histogram]) -> Iterator[ScopeMetrics]:
    for histogram in histograms:
        if points := _points(histogram, wall_nanoseconds()):
            metric = Metric(
                name=histogram.name,
                description=histogram.description,
                unit=histogram.unit,
                data=Points(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE),
            )
            yield ScopeMetrics(scope=InstrumentationScope(histogram.scope), metrics=[metric], schema_url="")


def _points(histogram: Histogram, now: int) -> list[HistogramDataPoint]:
    points: list[HistogramDataPoint] = []
    for labels, series in histogram.series:
        counts = tuple(series.counts)
        points.append(
            HistogramDataPoint(
                attributes=labels,
                start_time_unix_nano=series.since,
                time_unix_nano=now,
                count=sum(counts),
                sum=series.total,
                bucket_counts=counts,
                explicit_bounds=histogram.bounds,
                min=series.smallest,
                max=series.largest,
            )
        )
    return points
