import pytest

from servicekit.run.histograms import Histogram, Series, all_made


@pytest.fixture
def histogram() -> Histogram:
    return Histogram("test.waits", scope=__name__, description="Waits of a test", bounds=[0, 1, 5], labels=["queue"])


def counted(histogram: Histogram, queue: str) -> Series:
    return next(series for labels, series in histogram.series if labels == {"queue": queue})


def test_a_value_counts_in_the_bucket_that_it_does_not_exceed(histogram: Histogram) -> None:
    for value in (0, 0.5, 1, 1.5, 5, 6):
        histogram.record(value, "a")
    series = counted(histogram, "a")
    assert series.counts == [1, 2, 2, 1]
    assert (series.total, series.smallest, series.largest) == (14, 0, 6)


def test_a_negative_value_counts_as_0(histogram: Histogram) -> None:
    """A sum that falls looks like a restart to Prometheus."""
    histogram.record(-2, "a")
    series = counted(histogram, "a")
    assert (series.counts, series.total, series.smallest, series.largest) == ([1, 0, 0, 0], 0, 0, 0)


def test_each_set_of_labels_has_a_series_of_its_own(histogram: Histogram) -> None:
    assert histogram.series == []
    histogram.record(1, "a")
    histogram.record(1, "b")
    histogram.record(1, "b")
    assert [(labels, sum(series.counts)) for labels, series in histogram.series] == [
        ({"queue": "a"}, 1),
        ({"queue": "b"}, 2),
    ]


@pytest.mark.parametrize("labels", [(), ("a", "b")])
def test_other_labels_than_the_declared_ones_are_refused(histogram: Histogram, labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="has the labels"):
        histogram.record(1, *labels)


def test_every_histogram_is_exported(histogram: Histogram) -> None:
    assert histogram in all_made()
