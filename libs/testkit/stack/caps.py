"""Promise G12: no more posts go out on a day than the cap allows, and what is counted agrees with the log."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from testkit.stack.stops import FOREVER, Scope, Stop

Row = Mapping[str, Any]
Run = tuple[str, int]

_LAST_WORDS = frozenset({"SUCCESS", "UNKNOWN", "ABSENT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The daily cap of posts of an account, between an answer and the next call that changes it."""

    organization_id: str
    social_account_id: str
    most: int | None
    """None: no cap."""
    asked: datetime
    answered: datetime
    below_used: bool = False
    """It may be lower than what was used by then."""
    until: datetime = FOREVER
    """When the next call began."""
    over: datetime = FOREVER
    """When the next call was answered."""

    @property
    def stop(self) -> Stop | None:
        """Returns it as a call that may have stopped posts."""
        if self.most is None:
            return None
        return Stop(
            organization_id=self.organization_id,
            scope=Scope(social_account_id=self.social_account_id),
            what="UpdateAccount",
            asked=self.asked,
            answered=self.answered,
            until=self.until,
            over=self.over,
        )

    @property
    def account(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An effect, the job that it is of, and the start of its attempt, whose day counts. No account has a schedule."""

    account: tuple[str, str]
    key: str
    begun: datetime
    time: datetime


def sent_posts(jobs: Mapping[str, Row], attempts: Sequence[Row], effects: Mapping[str, Sequence[Row]]) -> list[Sent]:
    """`jobs` and `effects` are keyed by job id."""
    starts = defaultdict[str, list[datetime]](list)
    for attempt in attempts:
        starts[attempt["idempotency_key"]].append(attempt["start_time"])
    found = []
    for job_id, its_effects in effects.items():
        # Comments below a post count for no cap.
        for effect in its_effects if job_id in jobs and not jobs[job_id].get("part", 0) else ():
            time, begun = datetime.fromisoformat(effect["time"]), sorted(starts[effect["idempotency_key"]])
            account = (jobs[job_id]["organization_id"], jobs[job_id]["social_account_id"])
            start = begun[max(bisect_right(begun, time) - 1, 0)]
            found.append(Sent(account=account, key=effect["idempotency_key"], begun=start, time=time))
    return found


def over_caps(caps: Sequence[Cap], sent: Sequence[Sent], *, passing: Set[str]) -> Iterator[str]:
    """Finds days of accounts on which more went out than the cap allowed. The runs of `passing` may pass over caps."""
    of_accounts = defaultdict[tuple[str, str], list[Sent]](list)
    for each in sent:
        of_accounts[each.account].append(each)
    for cap in caps:
        if cap.most is None:
            continue
        days = defaultdict[object, list[Sent]](list)
        for each in of_accounts[cap.account]:
            if each.time < cap.until and each.key not in passing:
                days[each.begun.date()].append(each)
        for day, its_posts in days.items():
            earlier = sum(each.begun < cap.answered for each in its_posts)
            most = max(cap.most, earlier) if cap.below_used else cap.most
            # A cap that came later says nothing about a day that was over.
            if len(its_posts) > most and max(each.time for each in its_posts) > cap.answered:
                yield f"{cap.social_account_id} has a cap of {most}, and {len(its_posts)} posts of {day} are out"


def miscounted(
    jobs: Mapping[str, Row],
    effects: Mapping[str, Sequence[Row]],
    activities: Sequence[Row],
    reservations: Sequence[Row],
    capped: Set[tuple[str, str]],
) -> Iterator[str]:
    """Compares the log with the ledger, and the places of caps with the log.

    `capped` are the accounts with a cap for posts. What a person has to look for may be out, no matter what the log
    says: a request that the provider worked at for long was not to be found when it was looked up.
    """
    doubtful = {(job["id"], job["run"]) for job in jobs.values() if job["state"] == "NEEDS_ATTENTION"}
    out = {_run_of(each["idempotency_key"]) for its_effects in effects.values() for each in its_effects}
    last: dict[Run, str] = {}
    for row in sorted(activities, key=lambda row: (row["create_time"], row["id"])):
        if row["outcome"] in _LAST_WORDS:
            last[row["post_job_id"], row["run"]] = row["outcome"]
    used = {run for run, outcome in last.items() if outcome != "ABSENT"}
    yield from (f"run {run} is out, the log says {last.get(run)}" for run in sorted(out - used - doubtful))
    yield from (f"run {run} is not out, the log says SUCCESS" for run in sorted(used - out) if last[run] == "SUCCESS")
    places = Counter((row["post_job_id"], row["run"]) for row in reservations)
    for run in sorted(used | places.keys()):
        job = jobs.get(run[0])
        if job is None or (job["organization_id"], job["social_account_id"]) not in capped:
            continue
        if bool(places[run]) != (run in used and not job.get("part", 0)):
            yield f"run {run} has {places[run]} places of its cap, the log says {last.get(run)}"
        if places[run] > 1 and last[run] == "SUCCESS":
            yield f"run {run} has {places[run]} places of its cap, and is out once"


def _run_of(key: str) -> Run:
    job_id, _, run = key.rpartition("-")
    return job_id, int(run)
