"""Promise G8: Queue and Drafts agree with Publisher about every post job, and their own states follow from that."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from testkit.stack.history import ENDED, History, Row, draft_of, is_post, target_of, target_of_slot


def disagreements(history: History) -> Iterator[str]:
    """G8: Queue and Drafts show each job in Publisher's state, and slots and drafts in the state that follows."""
    yield from _jobs_in_drafts(history)
    yield from _jobs_in_queue(history)
    yield from _drafts(history)


def _jobs_in_drafts(history: History) -> Iterator[str]:
    states = {(row["organization_id"], row["id"]): row["state"] for row in history.draft_jobs}
    for job in history.jobs:
        state = states.get((job["organization_id"], job["id"]))
        if state != job["state"]:
            yield f"job {job['id']} is {job['state']}, Drafts has {state}"


def _jobs_in_queue(history: History) -> Iterator[str]:
    jobs = {target_of(row): row for row in history.jobs if is_post(row)}
    slots = {(row["organization_id"], row["id"]): row for row in history.slots}
    states = defaultdict[tuple[str, str], list[str]](list)
    called = set[tuple[str, str]]()
    called_jobs = history.acknowledged.called.jobs
    for row in history.slot_targets:
        key = (row["organization_id"], row["slot_id"])
        job = jobs.get(target_of_slot(slots[key], row))
        if job is None:
            continue
        if job["id"] in called_jobs:
            called.add(key)
        if job["slot_id"] != key[1]:
            # The job ended with this slot and belongs to a newer one now, unless it never belonged to this slot.
            states[key] += [] if row["of_another_slot"] else [row["job_state"] or "SCHEDULED"]
            continue
        states[key].append(job["state"])
        if job["state"] in ENDED and row["job_state"] != job["state"]:
            yield f"job {job['id']} is {job['state']}, slot {key[1]} has {row['job_state']}"
    for key, its_jobs in states.items():
        is_removed = slots[key]["state"] == "CANCELED" and draft_of(slots[key]) in history.acknowledged.asked_to_remove
        # A removal ends the slot, but not a run that a call has begun.
        if is_removed and key in called:
            continue
        if (expected := slot_state(its_jobs)) and slots[key]["state"] != expected:
            yield f"slot {key[1]} of {draft_of(slots[key])[1]} is {slots[key]['state']}, its jobs are {its_jobs}"


def _drafts(history: History) -> Iterator[str]:
    jobs = defaultdict[tuple[str, str], list[Row]](list)
    for job in history.jobs:
        jobs[draft_of(job)].append(job)
    for draft in history.drafts:
        # A failure on a target that was removed from the draft does not count.
        counted = [
            job
            for job in jobs[draft["organization_id"], draft["id"]]
            if (target_of(job)[2:] in draft["targets"] or job["state"] not in {"FAILED", "MISSED"})
            # A follow-up that still waits does so for one that has failed.
            and (is_post(job) or job["state"] not in {"PENDING", "CANCELED"})
        ]
        its_jobs = [job["state"] for job in counted]
        given_up = any(job["state"] == "CANCELED" and target_of(job)[2:] in draft["targets"] for job in counted)
        if (expected := draft_state(its_jobs, given_up=given_up)) and draft["state"] != expected:
            yield f"draft {draft['id']} is {draft['state']}, its jobs are {its_jobs}"


def slot_state(states: Sequence[str]) -> str | None:
    """Returns the state of a slot whose jobs have all ended; None while one has not."""
    if not states or not set(states) <= ENDED:
        return None
    if "NEEDS_ATTENTION" in states:
        return "NEEDS_ATTENTION"
    if "PUBLISHED" in states:
        return "PUBLISHED" if set(states) == {"PUBLISHED"} else "PARTIALLY_PUBLISHED"
    return states[0] if set(states) in ({"MISSED"}, {"CANCELED"}) else "FAILED"


def draft_state(states: Sequence[str], *, given_up: bool = False) -> str | None:
    """Returns the state of a draft that is in flight or whose jobs have all ended; None if its times decide.

    `given_up` says whether the job of a target that it still has was canceled.
    """
    counted = [state for state in states if state != "CANCELED"]
    if {"SENDING", "UNKNOWN"} & set(counted):
        return "PUBLISHING"
    if not counted or not set(counted) <= ENDED:
        return None
    if set(counted) == {"PUBLISHED"}:
        return "PARTIALLY_PUBLISHED" if given_up else "PUBLISHED"
    if "NEEDS_ATTENTION" in counted:
        return "NEEDS_ATTENTION"
    return "PARTIALLY_PUBLISHED" if "PUBLISHED" in counted else "FAILED"
