"""What is left after a run - the provider's ledger and the four databases - held against what PostFlow promises.

The checks know the promises (architecture.md, section 7), not the code: they fold states by themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from testkit.stack.edits import Edit, unannounced

Row = Mapping[str, Any]

DEFAULT_ATTEMPTS = 5
EARLY = timedelta(milliseconds=50)
MOVING = frozenset({"READY", "WAITING", "BLOCKED", "SENDING", "UNKNOWN"})
ENDED = frozenset({"PUBLISHED", "FAILED", "MISSED", "CANCELED", "NEEDS_ATTENTION"})
WITHOUT_EFFECT = frozenset({"FAILED", "MISSED", "CANCELED", "PENDING", "SCHEDULED"})
LIVE_SLOTS = frozenset({"SCHEDULED", "DISPATCHED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """What a client was told to be done: (organization, id) of drafts and of slots."""

    drafts: Set[tuple[str, str]] = frozenset()
    slots: Set[tuple[str, str]] = frozenset()
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Rows as they are in the databases, effects as they are in the ledger."""

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
    left_over: Sequence[str] = ()
    """What stands in outboxes and among the dead letters."""


def violations(history: History, *, unanswerable: Set[str] = frozenset()) -> list[str]:
    """Broken promises, each with its name. Jobs that cannot end in this run (by id) may stay open."""
    return [
        f"{promise}: {text}"
        for promise, check in CHECKS.items()
        for text in check(history)
        if not (promise == "G2" and any(job in text for job in unanswerable))
    ]


def _survived(history: History) -> Iterator[str]:
    """G0: what was acknowledged is there, with a job for every target; no effect comes from nowhere."""
    drafts = {(row["organization_id"], row["id"]) for row in history.drafts}
    slots = {(row["organization_id"], row["id"]) for row in history.slots}
    yield from (f"draft {each} was acknowledged and is gone" for each in history.acknowledged.drafts - drafts)
    yield from (f"slot {each} was acknowledged and is gone" for each in history.acknowledged.slots - slots)
    jobs = {_target(row) for row in history.jobs}
    by_id = {(row["organization_id"], row["id"]): row for row in history.slots}
    for row in history.slot_targets:
        target = _slot_target(by_id[row["organization_id"], row["slot_id"]], row)
        if target not in jobs:
            yield f"slot {row['slot_id']} has no post job for {target}"
    known = {row["idempotency_key"] for row in history.attempts}
    yield from (f"effect {each['id']} belongs to no attempt" for each in history.effects if _key(each) not in known)


def _once(history: History) -> Iterator[str]:
    """G1: at most one effect per job, whatever its runs."""
    counted = Counter(map(_key, history.effects))
    yield from (f"{key} has {count} effects" for key, count in counted.items() if count > 1)
    for job_id, effects in _by_job(history).items():
        if len(runs := {_key(effect) for effect in effects}) > 1:
            yield f"job {job_id} has effects of the runs {sorted(runs)}"


def _tried(history: History) -> Iterator[str]:
    """A run makes no more requests than it has attempts; an answer 429 spends none."""
    posts = [each for each in history.requests if each["operation"] == "post" and each["status"] != 429]
    tries = Counter(map(_key, posts))
    runs = {(row["post_job_id"], row["run"], row["idempotency_key"]) for row in history.attempts}
    most = {job["id"]: job["max_attempts"] or DEFAULT_ATTEMPTS for job in history.jobs}
    made = Counter[tuple[str, int]]()
    for job_id, run, key in runs:
        made[job_id, run] += tries[key]
    for (job_id, run), count in made.items():
        if count > most.get(job_id, DEFAULT_ATTEMPTS):
            yield f"job {job_id} made {count} requests in run {run}, and has {most.get(job_id)} attempts"


def _finished(history: History) -> Iterator[str]:
    """G2: nothing that is due is unfinished, and whatever is open knows when it moves next."""
    for job in history.jobs:
        if (job["state"] in MOVING) != (job["next_action_time"] is not None):
            yield f"job {job['id']} is {job['state']} with next action {job['next_action_time']}"
        if job["state"] not in ENDED and job["schedule_time"] and job["schedule_time"] <= history.now:
            yield f"job {job['id']} is due and still {job['state']} {job['state_reason']}"
    jobs = {_target(row): row["id"] for row in history.jobs}
    for slot in history.slots:
        if slot["state"] in LIVE_SLOTS and slot["schedule_time"] <= history.now:
            waiting_for = [
                job for target, job in jobs.items() if target[:3] == (*_draft(slot), slot["social_account_id"])
            ]
            yield f"slot {slot['id']} is due and still {slot['state']}, its jobs are {waiting_for}"


def _wanted(history: History) -> Iterator[str]:
    """G2: a target that is on the draft, and whose account has a slot, is not given up."""
    jobs = {_target(row): row for row in history.jobs}
    for target in sorted(_booked(history)):
        job = jobs.get(target)
        if job is None or job["state"] in {"CANCELED", "PENDING"}:
            yield f"draft {target[1]} has the target {target[2:]}, its job is {job['state'] if job else 'missing'}"


def open_jobs(history: History) -> Iterator[str]:
    """Jobs that have not ended, except those of targets that nobody has given a time."""
    booked = _booked(history)
    for job in history.jobs:
        if job["state"] not in ENDED and (job["state"] != "PENDING" or _target(job) in booked):
            yield f"job {job['id']} is {job['state']}"


def _booked(history: History) -> Set[tuple[str, str, str, str, str]]:
    """Targets that are on their drafts at the end and that a slot has, which was not canceled."""
    slots = {(row["organization_id"], row["id"]): row for row in history.slots if row["state"] != "CANCELED"}
    keys = ((row, (row["organization_id"], row["slot_id"])) for row in history.slot_targets)
    wanted = {(row["organization_id"], row["id"], *place) for row in history.drafts for place in row["targets"]}
    return wanted & {_slot_target(slots[key], row) for row, key in keys if key in slots}


def _true(history: History) -> Iterator[str]:
    """G3: PUBLISHED is exactly one effect with that id, and an effect is a job that says PUBLISHED."""
    effects = _by_run(history)
    for job in history.jobs:
        ids = [each["id"] for each in effects.get(_run(job), ())]
        if job["state"] == "PUBLISHED" and ids != [job["external_id"]]:
            yield f"job {job['id']} is PUBLISHED as {job['external_id']!r}, the provider has {ids}"
        if ids and job["state"] in {"READY", "WAITING", "BLOCKED"}:
            yield f"job {job['id']} is {job['state']}, the provider has {ids}"


def _nothing(history: History) -> Iterator[str]:
    """G4: what has failed, was missed or canceled, or has not begun, has no effect."""
    effects = _by_run(history)
    for job in history.jobs:
        if job["state"] in WITHOUT_EFFECT and (ids := [each["id"] for each in effects.get(_run(job), ())]):
            yield f"job {job['id']} is {job['state']}, the provider has {ids}"


def _punctual(history: History) -> Iterator[str]:
    """G7: nothing goes out before its time."""
    due = {_run(job): job["schedule_time"] for job in history.jobs}
    for effect in history.effects:
        schedule_time = due.get(_key(effect))
        if schedule_time and _time(effect) < schedule_time - EARLY:
            yield f"effect {effect['id']} is {schedule_time - _time(effect)} early"


def _agreed(history: History) -> Iterator[str]:
    """G8: Queue and Drafts say of every job what Publisher says, and their own states follow from that."""
    yield from _told_to_drafts(history)
    yield from _told_to_queue(history)
    jobs = defaultdict[tuple[str, str], list[Row]](list)
    for job in history.jobs:
        jobs[_draft(job)].append(job)
    for draft in history.drafts:
        # A failure on a target that the draft no longer has is nobody's concern.
        its_jobs = [
            job["state"]
            for job in jobs[draft["organization_id"], draft["id"]]
            if _target(job)[2:] in draft["targets"] or job["state"] not in {"FAILED", "MISSED"}
        ]
        if (wanted := draft_state(its_jobs)) and draft["state"] != wanted:
            yield f"draft {draft['id']} is {draft['state']}, its jobs are {its_jobs}"


def _told_to_drafts(history: History) -> Iterator[str]:
    told = {(row["organization_id"], row["id"]): row["state"] for row in history.draft_jobs}
    for job in history.jobs:
        state = told.get((job["organization_id"], job["id"]))
        if state != job["state"]:
            yield f"job {job['id']} is {job['state']}, Drafts says {state}"


def _told_to_queue(history: History) -> Iterator[str]:
    jobs = {_target(row): row for row in history.jobs}
    slots = {(row["organization_id"], row["id"]): row for row in history.slots}
    states = defaultdict[tuple[str, str], list[str]](list)
    for row in history.slot_targets:
        key = (row["organization_id"], row["slot_id"])
        job = jobs.get(_slot_target(slots[key], row))
        if job is None:
            continue
        if job["slot_id"] != key[1]:
            # It has ended with this slot and belongs to a newer one, unless it never had anything to do with this.
            states[key] += [] if row["of_another_slot"] else [row["job_state"] or "SCHEDULED"]
            continue
        states[key].append(job["state"])
        if job["state"] in ENDED and row["job_state"] != job["state"]:
            yield f"job {job['id']} is {job['state']}, slot {key[1]} says {row['job_state']}"
    for key, its_jobs in states.items():
        if (wanted := slot_state(its_jobs)) and slots[key]["state"] != wanted:
            yield f"slot {key[1]} is {slots[key]['state']}, its jobs are {its_jobs}"


def _announced(history: History) -> Iterator[str]:
    """G21: an older text is out only where the answer to the change has said so; the draft shows what is out."""
    effects = _by_job(history)
    jobs = {job["id"]: job for job in history.jobs}
    edits = history.acknowledged.edits
    yield from unannounced(edits, jobs, effects)
    shown = {(draft["organization_id"], draft["id"]): draft["text"] for draft in history.drafts}
    named = {job_id for edit in edits for job_id in edit.in_flight}
    for job_id, its_effects in effects.items():
        text = shown.get(_draft(jobs[job_id])) if job_id in jobs and job_id not in named else None
        for effect in its_effects:
            if text is not None and effect["text"] != text:
                yield f"effect {effect['id']} is {effect['text']!r}, its draft shows {text!r}"


def _emptied(history: History) -> Iterator[str]:
    """G2: every event has been published, and every message applied."""
    yield from history.left_over


def _intended(history: History) -> Iterator[str]:
    """G10: every effect has an attempt that was committed before it."""
    begun: dict[str, datetime] = {}
    for attempt in history.attempts:
        key = attempt["idempotency_key"]
        begun[key] = min(attempt["start_time"], begun.get(key, attempt["start_time"]))
    for effect in history.effects:
        if (start := begun.get(_key(effect))) and start > _time(effect):
            yield f"effect {effect['id']} came {start - _time(effect)} before its attempt"


CHECKS: Mapping[str, Callable[[History], Iterator[str]]] = {
    "G0": _survived,
    "G1": _once,
    "max_attempts": _tried,
    "G2": _finished,
    "G2 (targets)": _wanted,
    "G2 (events)": _emptied,
    "G3": _true,
    "G4": _nothing,
    "G7": _punctual,
    "G8": _agreed,
    "G10": _intended,
    "G21": _announced,
}


def slot_state(states: Sequence[str]) -> str | None:
    """Of a slot whose jobs have all ended; None while one has not."""
    if not states or not set(states) <= ENDED:
        return None
    if "NEEDS_ATTENTION" in states:
        return "NEEDS_ATTENTION"
    if "PUBLISHED" in states:
        return "PUBLISHED" if set(states) == {"PUBLISHED"} else "PARTIALLY_PUBLISHED"
    return states[0] if set(states) in ({"MISSED"}, {"CANCELED"}) else "FAILED"


def draft_state(states: Sequence[str]) -> str | None:
    """Of a draft whose jobs have all ended, or are in the open; None where its times decide."""
    counted = [state for state in states if state != "CANCELED"]
    if {"SENDING", "UNKNOWN"} & set(counted):
        return "PUBLISHING"
    if not counted or not set(counted) <= ENDED:
        return None
    if set(counted) == {"PUBLISHED"}:
        return "PUBLISHED"
    if "NEEDS_ATTENTION" in counted:
        return "NEEDS_ATTENTION"
    return "PARTIALLY_PUBLISHED" if "PUBLISHED" in counted else "FAILED"


def _by_job(history: History) -> Mapping[str, Sequence[Row]]:
    jobs = {row["idempotency_key"]: row["post_job_id"] for row in history.attempts}
    found = defaultdict[str, list[Row]](list)
    for effect in history.effects:
        if _key(effect) in jobs:
            found[jobs[_key(effect)]].append(effect)
    return found


def _key(effect: Row) -> str:
    key: str = effect["idempotency_key"]
    return key


def _run(job: Row) -> str:
    """The key under which a run of a job is sent."""
    return f"{job['id']}-{job['run']}"


def _by_run(history: History) -> Mapping[str, Sequence[Row]]:
    found = defaultdict[str, list[Row]](list)
    for effect in history.effects:
        found[_key(effect)].append(effect)
    return found


def _time(effect: Row) -> datetime:
    return datetime.fromisoformat(effect["time"])


def _draft(row: Row) -> tuple[str, str]:
    return row["organization_id"], row["draft_id"]


def _slot_target(slot: Row, row: Row) -> tuple[str, str, str, str, str]:
    return (*_draft(slot), slot["social_account_id"], row["channel"], row["destination"])


def _target(job: Row) -> tuple[str, str, str, str, str]:
    return (*_draft(job), job["social_account_id"], job["channel"], job["destination"])
