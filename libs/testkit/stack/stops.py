"""Promises G6 and G19: compares what was stopped, by a removal or a pause, with what the provider got after that."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]

FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An account of which nothing may start between an answer and the next call that lets something start."""

    organization_id: str
    social_account_id: str
    what: str
    """The call, for the report."""
    answered: datetime
    until: datetime = FOREVER
    in_flight: Set[str] = frozenset()
    """The post jobs that the answer names."""


def started_anyway(
    stops: Sequence[Stop], jobs: Mapping[str, Row], effects: Mapping[str, Sequence[Row]]
) -> Iterator[str]:
    """Finds posts that went out while their account was stopped, and that the answer does not name.

    `jobs` and `effects` are keyed by job id.
    """
    for stop in stops:
        for job_id, job in jobs.items():
            account = job["organization_id"], job["social_account_id"]
            if account == (stop.organization_id, stop.social_account_id) and job_id not in stop.in_flight:
                for effect in effects.get(job_id, ()):
                    time = datetime.fromisoformat(effect["time"])
                    if stop.answered < time < stop.until:
                        seconds = (time - stop.answered).total_seconds()
                        yield f"job {job_id} went out {seconds:.3f} s after {stop.what} of {stop.social_account_id}"
