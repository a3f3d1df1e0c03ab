"""A run's remains as data: the rows of the databases, and effects and requests from the provider's ledger."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from testkit.stack.called_runs import Called
from testkit.stack.caps import Cap
from testkit.stack.edits import Edit
from testkit.stack.stops import Stop

Row = Mapping[str, Any]

ENDED = frozenset({"PUBLISHED", "FAILED", "MISSED", "CANCELED", "NEEDS_ATTENTION"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The calls that were answered OK: (organization, id) of drafts and of slots, edits of drafts, stops, runs, caps.

    `asked_to_remove` has the drafts that were to leave their queue, no matter what the answer was: one target may be
    out already, and another one may still be taken back. `refusals` are posts without a slot that PublishNow refused.
    """

    drafts: Set[tuple[str, str]] = frozenset()
    slots: Set[tuple[str, str]] = frozenset()
    edits: Sequence[Edit] = ()
    removals: Sequence[Stop] = ()
    asked_to_remove: Set[tuple[str, str]] = frozenset()
    pauses: Sequence[Stop] = ()
    holds: Sequence[Stop] = ()
    disconnections: Sequence[Stop] = ()
    refusals: Sequence[Stop] = ()
    called: Called = field(default_factory=Called)
    caps: Sequence[Cap] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Rows as they are in the databases, effects and requests as they are in the ledger."""

    now: datetime
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    effects: Sequence[Row] = ()
    requests: Sequence[Row] = ()
    jobs: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    slots: Sequence[Row] = ()
    slot_targets: Sequence[Row] = ()
    drafts: Sequence[Row] = ()
    draft_jobs: Sequence[Row] = ()
    accounts: Sequence[Row] = ()
    activities: Sequence[Row] = ()
    reservations: Sequence[Row] = ()
    job_events: Sequence[Row] = ()
    """What Drafts has heard of each job: its run, state and reason, by version."""
    left_over: Sequence[str] = ()
    """Rows that are left in outboxes and among the dead letters, as sentences."""


def effects_by_job(history: History) -> Mapping[str, Sequence[Row]]:
    jobs = {row["idempotency_key"]: row["post_job_id"] for row in history.attempts}
    found = defaultdict[str, list[Row]](list)
    for effect in history.effects:
        if key_of(effect) in jobs:
            found[jobs[key_of(effect)]].append(effect)
    return found


def effects_by_run(history: History) -> Mapping[str, Sequence[Row]]:
    found = defaultdict[str, list[Row]](list)
    for effect in history.effects:
        found[key_of(effect)].append(effect)
    return found


def key_of(effect: Row) -> str:
    key: str = effect["idempotency_key"]
    return key


def run_of(job: Row) -> str:
    """Returns the idempotency key of the job's present run."""
    return f"{job['id']}-{job['run']}"


def time_of(effect: Row) -> datetime:
    return datetime.fromisoformat(effect["time"])


def draft_of(row: Row) -> tuple[str, str]:
    return row["organization_id"], row["draft_id"]


def target_of_slot(slot: Row, row: Row) -> tuple[str, str, str, str, str]:
    return (*draft_of(slot), slot["social_account_id"], row["channel"], row["destination"])


def is_post(job: Row) -> bool:
    """Returns whether the job is that of a post, and not of one of its follow-ups."""
    return not job.get("part", 0)


def target_of(job: Row) -> tuple[str, str, str, str, str]:
    return (*draft_of(job), job["social_account_id"], job["channel"], job["destination"])
