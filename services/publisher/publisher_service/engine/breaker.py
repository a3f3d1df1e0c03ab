"""The breaker of a provider's lane: while the provider cannot be reached, one request per back-off is a probe."""

import random
from collections.abc import Callable

from opentelemetry import metrics

from publisher_service.domain.outcome import Ambiguous, NotBegun, NotSent, Outcome
from servicekit.run.levels import Level

# Requests in a row, of any account, that found no provider.
_FAILURES = 5
_FIRST = 1.0
_LONGEST = 30.0

_meter = metrics.get_meter(__name__)
_down = _meter.create_gauge(
    "postflow.publish.provider_down", description="1 while a provider cannot be reached, by provider"
)
_probes = _meter.create_counter(
    "postflow.publish.probes", description="Requests that looked whether a provider can be reached again"
)


class Breaker:
    def __init__(
        self, provider: str, seconds: Callable[[], float], *, draw: Callable[[], float] = random.random
    ) -> None:
        """`seconds` is a monotonic clock."""
        self._labels = {"provider": provider}
        self._seconds = seconds
        self._draw = draw
        self._failures = 0
        self._wait = _FIRST
        self._next_probe = 0.0
        self._is_probing = False
        self._closed_until = 0.0
        self._shown = Level(_down, self._labels)
        self._shown.set(0)
        _probes.add(0, self._labels)

    @property
    def is_open(self) -> bool:
        """Returns whether the provider is taken for unreachable."""
        return self._failures >= _FAILURES

    @property
    def is_closed(self) -> bool:
        """Returns whether the provider has said that the quota of the application is used up."""
        return self._seconds() < self._closed_until

    @property
    def room(self) -> int | None:
        """Returns how many requests may be claimed; None for as many as there is room for."""
        if self.is_closed:
            return 0
        if not self.is_open:
            return None
        return 1 if not self._is_probing and self._seconds() >= self._next_probe else 0

    def close_for(self, seconds: float) -> None:
        """Admits nothing for so long."""
        self._closed_until = self._seconds() + seconds

    def begin_probe(self) -> None:
        """Notes that a request was claimed while the breaker is open; no other one is until its outcome is known."""
        self._is_probing = True
        _probes.add(1, self._labels)

    def note(self, outcome: Outcome, *, is_probe: bool) -> bool:
        """Counts an outcome. Returns whether the provider answers again after it did not."""
        if isinstance(outcome, NotSent) and outcome.is_unreachable:
            self._failures += 1
            if is_probe or self._failures == _FAILURES:
                self._back_off()
            return False
        if isinstance(outcome, NotSent):
            # The fault of one tenant, such as media that cannot be had: another post may be the probe at once.
            self._is_probing = self._is_probing and not is_probe
            return False
        if isinstance(outcome, NotBegun | Ambiguous):
            if is_probe:
                self._back_off()
            return False
        was_open = self.is_open
        self._failures, self._wait, self._is_probing = 0, _FIRST, False
        self._shown.set(0)
        return was_open

    def _back_off(self) -> None:
        """Waits for the next probe. Requests that were out together fail together, and count once."""
        self._is_probing = False
        self._next_probe = self._seconds() + self._wait * (0.5 + self._draw() / 2)
        self._wait = min(self._wait * 2, _LONGEST)
        self._shown.set(int(self.is_open))
