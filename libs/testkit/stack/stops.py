"""Promises G6 and G19: compares what was stopped with what the provider got after that.

Removals, pauses, holds and disconnections stop posts; a refusal of PublishNow leaves a post as it was.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]

FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The posts of an account, a brand or a provider, or a single one; all of the organization if nothing is named."""

    social_account_id: str = ""
    brand_id: str = ""
    provider: str = ""
    post_job_id: str = ""

    def covers(self, job: Row, provider: str) -> bool:
        fields = (
            (self.social_account_id, job["social_account_id"]),
            (self.brand_id, job["brand_id"]),
            (self.provider, provider),
            (self.post_job_id, job["id"]),
        )
        return all(wanted in ("", found) for wanted, found in fields)


EVERYTHING = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Posts of which none may start between an answer and the next call that lets one start."""

    organization_id: str
    scope: Scope
    what: str
    """The call, for the report."""
    asked: datetime
    """When the call began: from then on it may have had effect."""
    answered: datetime
    until: datetime = FOREVER
    """When the call began that lets something start."""
    over: datetime = FOREVER
    """When that call was answered: from then on the stop has no effect."""
    in_flight: Set[str] = frozenset()
    """The post jobs that the answer names."""

    def forbids(self, send: "Send") -> bool:
        if not self.answered < send.time < self.until or self.organization_id != send.job["organization_id"]:
            return False
        is_named = send.job["id"] in self.in_flight and not send.is_new
        return not is_named and self.scope.covers(send.job, send.provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A trace of an attempt, of which the job's row is given."""

    job: Row
    provider: str
    key: str
    """The idempotency key, which names the run."""
    what: str
    time: datetime
    is_new: bool = False
    """It shows that an attempt has begun, which is wrong even if the answer names the job."""


def started_anyway(stops: Sequence[Stop], sends: Sequence[Send]) -> Iterator[str]:
    """Finds posts that went out, or were about to, while they were stopped, and that the answer does not name."""
    for stop in stops:
        for send in filter(stop.forbids, sends):
            seconds = (send.time - stop.answered).total_seconds()
            yield f"job {send.job['id']} {send.what} {seconds:.3f} s after {stop.what}"
