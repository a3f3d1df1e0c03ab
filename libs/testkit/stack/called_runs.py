"""Promises of PublishNow and RetryPostJob: what was answered OK is sent, with that content or newer, and only once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from testkit.stack.stops import Stop

Row = Mapping[str, Any]

BEFORE_A_RUN = frozenset({"PENDING", "SCHEDULED"})
UNSENT = ([("CANCELED", "TARGET_REMOVED")], [("FAILED", "")])
HELD = {
    "ACCOUNT_ON_HOLD": "PauseQueue",
    "ORGANIZATION_ON_HOLD": "PutHold",
    "BRAND_ON_HOLD": "PutHold",
    "PROVIDER_ON_HOLD": "PutHold",
    "ACCOUNT_NOT_CONNECTED": "DisconnectAccount",
    "CAP_REACHED": "UpdateAccount",
}
"""Reasons to refuse a post that another call must have given, and that call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledRun:
    """A run that a call has begun."""

    organization_id: str
    post_job_id: str
    run: int
    version: int
    """The version of the job in the answer."""
    what: str
    """The call, for the report."""
    older: Set[str] = frozenset()
    """The texts that are older than that of the request."""
    over_cap: bool = False

    @property
    def key(self) -> str:
        return f"{self.post_job_id}-{self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A target that PublishNow has refused."""

    organization_id: str
    social_account_id: str
    post_job_id: str
    reason: str
    asked: datetime
    answered: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """All answers to these calls; `differing` are sentences about repeats that were not answered like the first."""

    runs: Sequence[CalledRun] = ()
    refusals: Sequence[Refusal] = ()
    differing: Sequence[str] = ()

    @property
    def keys(self) -> Set[str]:
        """Returns the idempotency keys of the runs."""
        return {run.key for run in self.runs}

    @property
    def jobs(self) -> Set[str]:
        return {run.post_job_id for run in self.runs}


def unsent(
    called: Called,
    jobs: Mapping[str, Row],
    attempts: Sequence[Row],
    job_events: Sequence[Row],
    effects: Sequence[Row],
) -> Iterator[str]:
    """Finds runs that a call has begun and that are gone, that a slot has ended, or that were never sent.

    Or that went out with a text older than that of the call. `jobs` are keyed by id. A run may end unsent if the draft
    has lost the target, or if the provider refuses to prepare the post.
    """
    yield from called.differing
    begun = {(row["post_job_id"], row["run"]) for row in attempts}
    texts = {effect["idempotency_key"]: effect["text"] for effect in effects}
    said = defaultdict[tuple[str, int], list[Row]](list)
    for event in sorted(job_events, key=itemgetter("version")):
        said[event["post_job_id"], event["run"]].append(event)
    for run in called.runs:
        job, events = jobs.get(run.post_job_id), said[run.post_job_id, run.run]
        states = [(event["state"], event["state_reason"]) for event in events if event["version"] >= run.version]
        if job is None or job["run"] < run.run:
            yield f"{run.what} began run {run.key}, the job is at run {job['run'] if job else None}"
        elif wrong := [state for state in states if state[0] in BEFORE_A_RUN or state[1] == "TAKEN_BACK"]:
            yield f"{run.what} began run {run.key}, which a slot has ended: {wrong}"
        elif (run.post_job_id, run.run) not in begun and states[-1:] not in UNSENT:
            yield f"{run.what} began run {run.key}, which was never sent: {states[-1:]}"
        if texts.get(run.key) in run.older:
            yield f"{run.what} began run {run.key}, which published the older text {texts[run.key]!r}"


def refused_wrongly(
    refusals: Sequence[Refusal], stops: Sequence[Stop], effects: Mapping[str, Sequence[Row]]
) -> Iterator[str]:
    """Finds refusals whose reason was not there at any time during the call.

    `stops` are those of accounts and wider ones; `effects` are keyed by job id.
    """
    for refusal in refusals:
        if refusal.reason == "ALREADY_PUBLISHED":
            times = [datetime.fromisoformat(each["time"]) for each in effects.get(refusal.post_job_id, ())]
            is_true = any(time < refusal.answered for time in times)
        elif what := HELD.get(refusal.reason):
            is_true = any(_is_reason(stop, what, refusal) for stop in stops)
        else:
            is_true = True
        if not is_true:
            yield f"PublishNow refused job {refusal.post_job_id} because of {refusal.reason}, which was not so"


def _is_reason(stop: Stop, what: str, refusal: Refusal) -> bool:
    if not stop.what.startswith(what) or not (stop.asked < refusal.answered and refusal.asked < stop.over):
        return False
    return stop.scope.social_account_id in ("", refusal.social_account_id)
