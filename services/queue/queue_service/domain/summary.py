"""The explanation of a slot in sentences: what happened or will happen, why then, and what stands in the way."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.job import ENDED, JobState
from queue_service.domain.obstacles import STARTED, Obstacle
from queue_service.domain.passed_times import MOST_PASSED, PassedTime, PassReason
from queue_service.domain.slot import LIVE, QueueSlot, SlotState, SlotTarget, TakingBack
from queue_service.domain.wording import counted, duration, instant, listed, sentence

_MOST_TARGETS = 10
_TIME = {
    "NEXT_FREE": "AddToQueue gave it this time: the next free slot time, or the first one for a draft put at the front",
    "CHOSEN": "the caller chose this time",
    "DRAFT_TIME": "the draft asks for this time",
    "REORDERED": "ReorderQueue gave it this time",
    "MOVED": "MoveSlot gave it this time",
    "SHUFFLED": "ShuffleQueue gave it this time",
    "SHIFTED": "it shifted to this time because another slot was put before it, or one was removed and the gap closed",
    "RESUMED": "it was overdue when its queue was resumed, and got this time then",
    "LATE": "it could not go out in time, and the late policy of its queue gave it this time",
    "ZONE_DATA": "newer time zone data made its wall-clock time this instant",
}
_ENDED = {
    SlotState.PUBLISHED: "Every target of draft {draft} on account {account} is published",
    SlotState.PARTIALLY_PUBLISHED: "Some targets of draft {draft} on account {account} are published, others are not",
    SlotState.FAILED: "Draft {draft} was not published on account {account}",
    SlotState.MISSED: "Draft {draft} was not published on account {account}, because its latest time passed",
    SlotState.NEEDS_ATTENTION: "Nothing proves whether draft {draft} was published on account {account}: a person must "
    "look at the provider and say so with ResolvePostJob",
    SlotState.CANCELED: "Nothing was sent of draft {draft} on account {account} for this slot, and nothing will be",
}
_CANCELED = {
    "REMOVED": "RemoveFromQueue canceled it",
    "CLEARED": "ClearQueue canceled it",
    "OVERDUE": "it was overdue when its queue was resumed, and ResumeQueue canceled what was overdue",
    "DRAFT_PUBLISHED": "an earlier slot of the draft had sent its targets",
    "NEEDS_ATTENTION": "an earlier slot of the draft may have sent its targets, which a person must find out first",
    "": "its targets were removed from the draft",
    # Queue gives a slot that it takes back itself a reason of its own.
    "TAKEN_BACK": "its posts were taken back from Publisher by CancelPostJobs",
}
_PASSED = {
    PassReason.FILLED: "filled",
    PassReason.SKIPPED: "left empty by SkipNextSlot",
    PassReason.CAPPED: "on a day that has reached the daily cap",
    PassReason.WINDOW: "outside the send window",
    PassReason.CATEGORY: "kept for another category",
    PassReason.NOTICE: "too near",
    PassReason.GAP: "free now",
}
_JOBS = {
    JobState.PENDING: "has no time at Publisher yet",
    JobState.SCHEDULED: "waits for its command",
    JobState.READY: "is at Publisher and waits for its turn",
    JobState.SENDING: "is being sent",
    JobState.WAITING: "waits at Publisher",
    JobState.BLOCKED: "is blocked at Publisher",
    JobState.UNKNOWN: "may be out: Publisher is looking for it at the provider",
    JobState.PUBLISHED: "was published",
    JobState.FAILED: "failed",
    JobState.MISSED: "was missed",
    JobState.CANCELED: "was canceled",
    JobState.NEEDS_ATTENTION: "may be out, and needs a person",
}
_TAKING_BACK = {
    TakingBack.RETURN: "Publisher is asked to give it back, so that it returns to the queue",
    TakingBack.CANCEL: "Publisher is asked to give it back, so that it is canceled",
}


def summary(
    slot: QueueSlot,
    known: Circumstances,
    *,
    time_reason: str,
    passed: Sequence[PassedTime] | None,
    obstacles: Sequence[Obstacle],
    now: datetime,
) -> str:
    """Writes the summary; `passed` is None if the slot times before the slot could not be read."""
    lines = _live(slot, known, obstacles, now) if slot.state in LIVE else _ended(slot)
    clauses = [*lines[:1], _TIME.get(time_reason, f"its time has the reason {time_reason}")]
    if now < slot.schedule_time and slot.state in LIVE:
        clauses.append(_earlier_times(passed))
    return " ".join(map(sentence, [*clauses, *lines[1:]]))


def _live(slot: QueueSlot, known: Circumstances, obstacles: Sequence[Obstacle], now: datetime) -> list[str]:
    verb = "was" if now > slot.schedule_time else "is"
    return [
        f"draft {slot.draft_id} {verb} to go out on account {slot.social_account_id} at {_time_of(slot)}",
        *_progress(slot, known, obstacles, now),
        *_hindrances(obstacles),
        *_too_late(slot, known, now),
    ]


def _progress(slot: QueueSlot, known: Circumstances, obstacles: Sequence[Obstacle], now: datetime) -> Iterator[str]:
    is_overdue = now > slot.schedule_time
    if slot.state is SlotState.DISPATCHED:
        yield "its commands have been sent to Publisher"
        yield from _posts(slot)
    elif is_overdue:
        yield f"it is overdue by {duration(now - slot.schedule_time)}, and has not been handed to Publisher"
        if not obstacles and not _is_late(slot, known, now):
            yield "nothing is known to hold it up: it is handed over as soon as the stream takes its commands"
    elif all(each.reason == "NOT_DUE" for each in obstacles):
        yield "it is handed to Publisher shortly before its time, and nothing is known to prevent that"
    if known.taking_back:
        yield _TAKING_BACK[known.taking_back]


def _hindrances(obstacles: Sequence[Obstacle]) -> Iterator[str]:
    named = [each for each in obstacles if each.reason != "NOT_DUE"]
    for before, obstacle in zip([None, *named], named, strict=False):
        is_further = before is not None and before.target == obstacle.target
        until = f"; Publisher goes on at {instant(obstacle.clear_time)}" if obstacle.clear_time else ""
        yield f"{'besides, ' if is_further else f'{_hindered(obstacle.target)}: '}{obstacle.message}{until}"


def _hindered(target: SlotTarget | None) -> str:
    if target is None:
        return "it does not go out yet"
    return f"{_name(target)} {'is not sent again' if target.job_state is JobState.UNKNOWN else 'does not go out yet'}"


def _too_late(slot: QueueSlot, known: Circumstances, now: datetime) -> Iterator[str]:
    """Says what happens if it does not go out in time, unless its queue is paused or a post of it has started."""
    if known.pause_time or any(target.job_state in STARTED for target in slot.targets):
        return
    if _is_late(slot, known, now):
        yield "the late policy of its queue moves it to the next free slot time"
    elif now > slot.not_after:
        yield f"its latest time, {instant(slot.not_after)}, has passed"
    elif known.is_moved_when_late(slot):
        until = instant(slot.schedule_time + known.late_policy.grace)
        yield f"if it has not been handed over by {until}, it moves to the next free slot time"
    else:
        yield f"if it has not gone out by {instant(slot.not_after)}, it is missed"


def _is_late(slot: QueueSlot, known: Circumstances, now: datetime) -> bool:
    return known.is_moved_when_late(slot) and now > slot.schedule_time + known.late_policy.grace


def _ended(slot: QueueSlot) -> list[str]:
    what = _ENDED[slot.state].format(draft=slot.draft_id, account=slot.social_account_id)
    return [f"{what}; its time was {_time_of(slot)}", *_posts(slot), *_reason_of_end(slot)]


def _reason_of_end(slot: QueueSlot) -> Iterator[str]:
    if slot.state is SlotState.CANCELED:
        is_taken_back = any(target.state_reason == "TAKEN_BACK" for target in slot.targets)
        reason = slot.state_reason or ("TAKEN_BACK" if is_taken_back else "")
        yield _CANCELED.get(reason, f"it has the reason {reason}")
    elif slot.state is SlotState.MISSED:
        yield f"its latest time was {instant(slot.not_after)}"


def _posts(slot: QueueSlot) -> Iterator[str]:
    """Says of each post how it is doing. Those of a slot that ended before they were handed over do nothing."""
    for target in slot.targets[:_MOST_TARGETS]:
        if target.job_state is not None and (slot.state in LIVE or target.job_state in STARTED):
            yield f"{_name(target)} {_JOBS[target.job_state]}{_details(target)}"
        elif slot.state in LIVE:
            yield f"{_name(target)} waits for Publisher's answer"
    if len(slot.targets) > _MOST_TARGETS:
        yield f"it has {counted(len(slot.targets) - _MOST_TARGETS, 'more target')}"


def _details(target: SlotTarget) -> str:
    at = f" at {instant(target.publish_time)}" if target.publish_time else ""
    where = f" ({target.external_url})" if target.external_url else ""
    why = f": {target.error_message}" if target.error_message and target.job_state in ENDED else ""
    return f"{at}{where}{why}"


def _earlier_times(passed: Sequence[PassedTime] | None) -> str:
    if passed is None:
        return "the slot times before it could not be read from Schedule"
    if not passed:
        return "there is no earlier slot time from now on"
    counts = Counter(each.reason for each in passed)
    if len(counts) == 1:
        return f"{_before(len(passed))} {_PASSED[passed[0].reason]}"
    parts = [
        f"{counts[reason]} {'is' if counts[reason] == 1 else 'are'} {what}"
        for reason, what in _PASSED.items()
        if reason in counts
    ]
    return f"of the {_latest(len(passed))}{len(passed)} slot times before it, {listed(parts)}"


def _before(number: int) -> str:
    if number == 1:
        return "the slot time before it is"
    return f"the {_latest(number)}{number} slot times before it are"


def _latest(number: int) -> str:
    return "latest " if number == MOST_PASSED else ""


def _name(target: SlotTarget) -> str:
    return f"the post to {target.channel}{f' {target.destination}' if target.destination else ''}"


def _time_of(slot: QueueSlot) -> str:
    if slot.local_date is None or slot.local_time is None or slot.time_zone == "UTC":
        return instant(slot.schedule_time)
    return f"{slot.local_date} {slot.local_time:%H:%M} in {slot.time_zone} ({instant(slot.schedule_time)})"
