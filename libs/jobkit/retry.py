"""When a failed run is tried again."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    max_attempts: int = 5
    first: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        for name, kind in (("max_attempts", int), ("first", timedelta), ("cap", timedelta)):
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{name} is of type {kind.__name__}, not {value!r:.100}")
        if self.max_attempts < 1 or not timedelta(0) < self.first <= self.cap:
            raise ValueError("a job has at least one attempt, and a back-off that is positive and at most its cap")

    def delay(self, attempts: int, draw: float) -> timedelta:
        """After so many attempts, for a number drawn from [0, 1): all of the back-off is jitter.

        The back-off doubles. Jobs that failed together come back evenly spread, not together.
        """
        doublings = min(attempts - 1, 60)
        capped = 2.0**doublings >= self.cap / self.first
        return (self.cap if capped else self.first * 2**doublings) * draw


def patience(failures: int, draw: float) -> float:
    """Seconds to wait for a store that has failed so often in a row, with a number drawn from [0, 1)."""
    return min(0.1 * 2.0 ** min(failures, 30), 10.0) * (0.5 + 0.5 * draw)
