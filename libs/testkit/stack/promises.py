"""Checks a run's remains against PostFlow's promises, which are numbered G0 to G21.

The checks know the promises and not the code: they fold states themselves.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import datetime, timedelta
from typing import Any

from testkit.stack.agreement import disagreements
from testkit.stack.called_runs import refused_wrongly, unsent
from testkit.stack.caps import miscounted, over_caps, sent_posts
from testkit.stack.edits import unannounced
from testkit.stack.follow_ups import out_of_order
from testkit.stack.history import (
    ENDED,
    History,
    draft_of,
    effects_by_job,
    effects_by_run,
    is_post,
    key_of,
    run_of,
    target_of,
    target_of_slot,
    time_of,
)
from testkit.stack.stops import Send, started_anyway

DEFAULT_ATTEMPTS = 5
EARLY = timedelta(milliseconds=50)
MOVING = frozenset({"READY", "WAITING", "BLOCKED", "SENDING", "UNKNOWN"})
WITHOUT_EFFECT = frozenset({"FAILED", "MISSED", "CANCELED", "PENDING", "SCHEDULED"})
LIVE_SLOTS = frozenset({"SCHEDULED", "DISPATCHED"})


def violations(history: History, *, unanswerable: Set[str] = frozenset()) -> list[str]:
    """Returns the broken promises, each with its name. Jobs that cannot end in this run (by id) may stay open."""
    return [
        f"{promise}: {text}"
        for promise, check in CHECKS.items()
        for text in check(history)
        if not (promise == "G2" and any(job in text for job in unanswerable))
    ]


def open_jobs(history: History) -> Iterator[str]:
    """Finds jobs that have not ended, except those of targets that were never scheduled."""
    booked = _booked(history)
    for job in history.jobs:
        if job["state"] not in ENDED and (job["state"] != "PENDING" or (is_post(job) and target_of(job) in booked)):
            yield f"job {job['id']} is {job['state']}"


def _survived(history: History) -> Iterator[str]:
    """G0: everything acknowledged exists, with a job for every target; every effect belongs to an attempt."""
    drafts = {(row["organization_id"], row["id"]) for row in history.drafts}
    slots = {(row["organization_id"], row["id"]) for row in history.slots}
    yield from (f"draft {each} was acknowledged and is gone" for each in history.acknowledged.drafts - drafts)
    yield from (f"slot {each} was acknowledged and is gone" for each in history.acknowledged.slots - slots)
    jobs = {target_of(row) for row in history.jobs if is_post(row)}
    by_id = {(row["organization_id"], row["id"]): row for row in history.slots}
    for row in history.slot_targets:
        target = target_of_slot(by_id[row["organization_id"], row["slot_id"]], row)
        if target not in jobs:
            yield f"slot {row['slot_id']} has no post job for {target}"
    known = {row["idempotency_key"] for row in history.attempts}
    yield from (f"effect {each['id']} belongs to no attempt" for each in history.effects if key_of(each) not in known)


def _at_most_once(history: History) -> Iterator[str]:
    """G1: a job has at most one effect over all its runs."""
    counted = Counter(map(key_of, history.effects))
    yield from (f"{key} has {count} effects" for key, count in counted.items() if count > 1)
    for job_id, effects in effects_by_job(history).items():
        if len(runs := {key_of(effect) for effect in effects}) > 1:
            yield f"job {job_id} has effects of the runs {sorted(runs)}"


def _attempts_bounded(history: History) -> Iterator[str]:
    """A run makes no more requests than it has attempts; an answer 429 uses up none."""
    posts = [each for each in history.requests if each["operation"] == "post" and each["status"] != 429]
    requests = Counter(map(key_of, posts))
    runs = {(row["post_job_id"], row["run"], row["idempotency_key"]) for row in history.attempts}
    most = {job["id"]: job["max_attempts"] or DEFAULT_ATTEMPTS for job in history.jobs}
    made = Counter[tuple[str, int]]()
    for job_id, run, key in runs:
        made[job_id, run] += requests[key]
    for (job_id, run), count in made.items():
        if count > most.get(job_id, DEFAULT_ATTEMPTS):
            yield f"job {job_id} made {count} requests in run {run}, and has {most.get(job_id)} attempts"


def _finished(history: History) -> Iterator[str]:
    """G2: nothing that is due is unfinished, and every open job has a next action."""
    for job in history.jobs:
        next_action = job["next_action_time"] or (job["lease_end"] if job["state"] == "SENDING" else None)
        if (job["state"] in MOVING) != (next_action is not None):
            yield f"job {job['id']} is {job['state']} with next action {next_action}"
        if job["state"] not in ENDED and job["schedule_time"] and job["schedule_time"] <= history.now:
            yield f"job {job['id']} is due and still {job['state']} {job['state_reason']}"
    jobs = {target_of(row): row["id"] for row in history.jobs if is_post(row)}
    for slot in history.slots:
        if slot["state"] in LIVE_SLOTS and slot["schedule_time"] <= history.now:
            waiting_for = [
                job for target, job in jobs.items() if target[:3] == (*draft_of(slot), slot["social_account_id"])
            ]
            yield f"slot {slot['id']} is due and still {slot['state']}, its jobs are {waiting_for}"


def _targets_kept(history: History) -> Iterator[str]:
    """G2: a target of a draft whose account has a slot is not given up, unless somebody asked to remove it."""
    jobs = {target_of(row): row for row in history.jobs if is_post(row)}
    for target in sorted(_booked(history)):
        job = jobs.get(target)
        given_up = {"PENDING"} if target[:2] in history.acknowledged.asked_to_remove else {"CANCELED", "PENDING"}
        if job is None or job["state"] in given_up:
            yield f"draft {target[1]} has the target {target[2:]}, its job is {job['state'] if job else 'missing'}"


def _booked(history: History) -> Set[tuple[str, str, str, str, str]]:
    """Returns the targets that their drafts still have and that have a slot which was not canceled."""
    slots = {(row["organization_id"], row["id"]): row for row in history.slots if row["state"] != "CANCELED"}
    keys = ((row, (row["organization_id"], row["slot_id"])) for row in history.slot_targets)
    on_drafts = {(row["organization_id"], row["id"], *place) for row in history.drafts for place in row["targets"]}
    return on_drafts & {target_of_slot(slots[key], row) for row, key in keys if key in slots}


def _events_applied(history: History) -> Iterator[str]:
    """G2: every event has been published, and every message applied."""
    yield from history.left_over


def _published_is_true(history: History) -> Iterator[str]:
    """G3: a PUBLISHED job has exactly one effect, the one with its external id; a job that still waits has none."""
    effects = effects_by_run(history)
    for job in history.jobs:
        ids = [each["id"] for each in effects.get(run_of(job), ())]
        if job["state"] == "PUBLISHED" and ids != [job["external_id"]]:
            yield f"job {job['id']} is PUBLISHED as {job['external_id']!r}, the provider has {ids}"
        if ids and job["state"] in {"READY", "WAITING", "BLOCKED"}:
            yield f"job {job['id']} is {job['state']}, the provider has {ids}"


def _failed_is_true(history: History) -> Iterator[str]:
    """G4: a job that failed, was missed, was canceled or has not begun has no effect."""
    effects = effects_by_run(history)
    for job in history.jobs:
        if job["state"] in WITHOUT_EFFECT and (ids := [each["id"] for each in effects.get(run_of(job), ())]):
            yield f"job {job['id']} is {job['state']}, the provider has {ids}"


def _removals_respected(history: History) -> Iterator[str]:
    """G6: once a removal was answered OK, nothing goes out until the draft gets a time again, or a call sends it.

    Follow-ups of a post that is out go out: it was too late to remove that.
    """
    called = history.acknowledged.called.keys
    sends = [send for send in _sends(history) if send.key not in called and is_post(send.job)]
    yield from started_anyway(history.acknowledged.removals, sends)


def _stops_respected(history: History) -> Iterator[str]:
    """G19: once a pause or a hold was answered OK, nothing starts until its end, except what the answer names."""
    known = history.acknowledged
    yield from started_anyway([*known.pauses, *known.holds, *known.disconnections], _sends(history))


def _calls_respected(history: History) -> Iterator[str]:
    """Finds runs that PublishNow or RetryPostJob has begun and that were not sent, and refused posts that changed."""
    known = history.acknowledged
    jobs = _jobs(history)
    yield from unsent(known.called, jobs, history.attempts, history.job_events, history.effects)
    stops = [*known.pauses, *known.holds, *known.disconnections, *(cap.stop for cap in known.caps if cap.stop)]
    yield from refused_wrongly(known.called.refusals, stops, effects_by_job(history))
    called = known.called.keys
    sends = [send for send in _sends(history) if send.key not in called]
    yield from started_anyway(known.refusals, sends)


def _caps_respected(history: History) -> Iterator[str]:
    """G12: no account has more posts of a day than its cap allows; log, caps and ledger agree."""
    known = history.acknowledged
    jobs, effects = _jobs(history), effects_by_job(history)
    passing = {run.key for run in known.called.runs if run.over_cap}
    yield from over_caps(known.caps, sent_posts(jobs, history.attempts, effects), passing=passing)
    latest = {cap.account: cap for cap in known.caps}
    capped = {account for account, cap in latest.items() if cap.most is not None}
    yield from miscounted(jobs, effects, history.activities, history.reservations, capped)


def _sends(history: History) -> list[Send]:
    """Returns each trace that an attempt has left: its record, its request, its effect."""
    jobs = _jobs(history)
    providers = {(row["organization_id"], row["id"]): row["provider"] for row in history.accounts}
    of_keys = {row["idempotency_key"]: row["post_job_id"] for row in history.attempts}
    found = [(row["idempotency_key"], "was claimed", row["start_time"], True) for row in history.attempts]
    posts = [row for row in history.requests if row["operation"] == "post"]
    found += [(key_of(row), "was requested", datetime.fromisoformat(row["arrival"]), False) for row in posts]
    found += [(key_of(effect), "went out", time_of(effect), False) for effect in history.effects]
    sends = []
    for key, what, time, is_new in found:
        job = jobs.get(of_keys.get(key, ""))
        if job is not None:
            provider = providers.get((job["organization_id"], job["social_account_id"]), "")
            sends.append(Send(job=job, provider=provider, key=key, what=what, time=time, is_new=is_new))
    return sends


def _jobs(history: History) -> Mapping[str, Mapping[str, Any]]:
    return {job["id"]: job for job in history.jobs}


def _not_early(history: History) -> Iterator[str]:
    """G7: nothing goes out before its time."""
    due = {run_of(job): job["schedule_time"] for job in history.jobs}
    for effect in history.effects:
        schedule_time = due.get(key_of(effect))
        if schedule_time and time_of(effect) < schedule_time - EARLY:
            yield f"effect {effect['id']} is {schedule_time - time_of(effect)} early"


def _recorded_first(history: History) -> Iterator[str]:
    """G10: every effect has an attempt that was committed before it."""
    begun: dict[str, datetime] = {}
    for attempt in history.attempts:
        key = attempt["idempotency_key"]
        begun[key] = min(attempt["start_time"], begun.get(key, attempt["start_time"]))
    for effect in history.effects:
        if (start := begun.get(key_of(effect))) and start > time_of(effect):
            yield f"effect {effect['id']} came {start - time_of(effect)} before its attempt"


def _edits_respected(history: History) -> Iterator[str]:
    """G21: an older text is out only if the answer to the edit named its job; the draft shows the text that is out."""
    effects = effects_by_job(history)
    jobs = {job["id"]: job for job in history.jobs}
    edits = history.acknowledged.edits
    yield from unannounced(edits, jobs, effects)
    shown = {(draft["organization_id"], draft["id"]): draft["text"] for draft in history.drafts}
    named = {job_id for edit in edits for job_id in edit.in_flight}
    for job_id, its_effects in effects.items():
        is_shown = job_id in jobs and job_id not in named and is_post(jobs[job_id])
        text = shown.get(draft_of(jobs[job_id])) if is_shown else None
        for effect in its_effects:
            if text is not None and effect["text"] != text:
                yield f"effect {effect['id']} is {effect['text']!r}, its draft shows {text!r}"


CHECKS: Mapping[str, Callable[[History], Iterator[str]]] = {
    "G0": _survived,
    "G1": _at_most_once,
    "max_attempts": _attempts_bounded,
    "G2": _finished,
    "G2 (targets)": _targets_kept,
    "G2 (events)": _events_applied,
    "G3": _published_is_true,
    "G4": _failed_is_true,
    "G6": _removals_respected,
    "G7": _not_early,
    "G8": disagreements,
    "G10": _recorded_first,
    "G12": _caps_respected,
    "G19": _stops_respected,
    "G21": _edits_respected,
    "calls": _calls_respected,
    "follow-ups": out_of_order,
}
