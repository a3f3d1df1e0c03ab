"""The numbers by which jobs are retried and unknown outcomes are looked up."""

from dataclasses import dataclass
from datetime import timedelta

_LONGEST_PAUSE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    retry_first: timedelta = timedelta(seconds=5)
    retry_cap: timedelta = timedelta(minutes=15)
    # After an ambiguous end a look at the provider proves nothing for this long.
    unknown_settle: timedelta = timedelta(minutes=2)
    # How long an outcome is looked up before a person is asked.
    unknown_deadline: timedelta = timedelta(hours=1)
    # How long the last look may take; then the sweep leaves the job to a person.
    last_look: timedelta = timedelta(minutes=1)
    # The first wait after a look that proved nothing; later ones grow with the time that has passed.
    lookup_again: timedelta = timedelta(seconds=30)
    # The wait for a fault of our own: no key for the credentials.
    repaired: timedelta = timedelta(seconds=30)

    def retry_delay(self, attempts: int, *, draw: float) -> timedelta:
        """Returns a delay that doubles with the attempts, capped, with full jitter.

        `draw` is in [0, 1). The delay is never under a tenth of the bound, so that no retry is immediate.
        """
        bound = min(self.retry_first * float(2 ** min(max(attempts - 1, 0), 20)), self.retry_cap)
        return bound * (0.1 + 0.9 * draw)

    def pause(self, failures: int, *, draw: float) -> timedelta:
        """Returns how long an account pauses that has found no provider; short enough to notice the end soon."""
        return min(self.retry_delay(failures, draw=draw), _LONGEST_PAUSE)

    def look_delay(self, passed: timedelta) -> timedelta:
        """Returns the wait before the next look: half of the time that has passed, within bounds."""
        return min(max(self.lookup_again, passed / 2), max(self.retry_cap, self.lookup_again))
