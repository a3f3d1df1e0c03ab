"""The delays before a failed run, or a failed call of the store, is retried."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The number of attempts at one occurrence, and the back-off between them."""

    max_attempts: int = 5
    first: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        for name, kind in (("max_attempts", int), ("first", timedelta), ("cap", timedelta)):
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r:.100}")
        if self.max_attempts < 1 or not timedelta(0) < self.first <= self.cap:
            raise ValueError("a job needs at least one attempt, and a back-off with 0 < first <= cap")

    def delay(self, attempts: int, draw: float) -> timedelta:
        """Returns the back-off after so many attempts, for a number `draw` from [0, 1).

        The bound doubles with each attempt, and the delay is drawn from zero to the bound (full jitter), so that jobs
        which failed together are not retried together.
        """
        doublings = min(attempts - 1, 60)
        capped = 2.0**doublings >= self.cap / self.first
        return (self.cap if capped else self.first * 2**doublings) * draw


def store_backoff(failures: int, draw: float) -> float:
    """Returns the seconds to wait after so many failed store calls in a row, for a number `draw` from [0, 1)."""
    return min(0.1 * 2.0 ** min(failures, 30), 10.0) * (0.5 + 0.5 * draw)
