"""Gauges of values that a loop looks at again and again, and that seldom change: setting a gauge takes 4 to 7 us."""

from collections.abc import Mapping
from typing import Protocol


class Gauge(Protocol):
    def set(self, amount: float, attributes: Mapping[str, str] | None = None) -> None: ...


class Level:
    """The value of a gauge for one set of labels. Create it where the process is wired, when there is a provider."""

    __slots__ = ("_gauge", "_labels", "_shown")

    def __init__(self, gauge: Gauge, labels: Mapping[str, str] | None = None) -> None:
        self._gauge = gauge
        self._labels = labels
        self._shown: float | None = None

    def set(self, value: float) -> None:
        if value != self._shown:
            self._gauge.set(value, self._labels)
            self._shown = value
