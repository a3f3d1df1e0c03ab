"""Shows counters as 0 before their first event: an alarm on an increase would miss the first one of a new series.

Modules create their counters when they are imported, before `servicekit.run.providers` has set up a provider, and what
is added until then is lost. So the zeros are kept here and added once there is a provider.
"""

from collections.abc import Mapping

from opentelemetry.metrics import Counter

_zeros: list[tuple[Counter, Mapping[str, str]]] = []


def from_zero(counter: Counter, *labels: Mapping[str, str]) -> Counter:
    """Returns the counter, which is shown as 0 from the start for each set of labels, or without labels."""
    for each in labels or ({},):
        if (counter, each) not in _zeros:
            _zeros.append((counter, each))
        counter.add(0, each)
    return counter


def add_all() -> None:
    """Adds the zeros, once there is a provider."""
    for counter, labels in _zeros:
        counter.add(0, labels)
