"""The numbers by which jobs are retried and questions are settled."""

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    retry_first: timedelta = timedelta(seconds=5)
    retry_cap: timedelta = timedelta(minutes=15)
    # How long after an ambiguous end a look at the provider proves anything.
    unknown_settle: timedelta = timedelta(minutes=2)
    # How long to wait after a look that failed.
    lookup_again: timedelta = timedelta(seconds=30)

    def retry_delay(self, attempts: int) -> timedelta:
        """Doubling, capped, with full jitter; never under a tenth, so that a retry is never at once."""
        bound = min(self.retry_first * float(2 ** min(attempts - 1, 20)), self.retry_cap)
        return bound * random.uniform(0.1, 1.0)
