"""Counters that are there before their first event: an alarm on an increase misses the first one of a new series.

A module makes its counters when it is imported, before `servicekit.run.providers` has set up what counts: what is added
until then is lost. So the zeros are kept here, and added once there is somebody to count.
"""

from collections.abc import Mapping

from opentelemetry.metrics import Counter

_zeros: list[tuple[Counter, Mapping[str, str]]] = []


def from_zero(counter: Counter, *labels: Mapping[str, str]) -> Counter:
    """The counter itself; it is shown as 0 from the start, for each of these sets of labels, or without any."""
    for each in labels or ({},):
        if (counter, each) not in _zeros:
            _zeros.append((counter, each))
        counter.add(0, each)
    return counter


def add_all() -> None:
    """Called once there is a provider."""
    for counter, labels in _zeros:
        counter.add(0, labels)
