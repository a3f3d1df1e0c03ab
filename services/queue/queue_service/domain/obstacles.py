"""Obstacles: what keeps a live slot from going out, now or at its time."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.job import ENDED, JobState
from queue_service.domain.slot import LIVE, QueueSlot, SlotState, SlotTarget
from queue_service.domain.wording import instant

_BY_REASON = {
    "IN_LINE": "earlier posts of the account are sent first",
    "CONTENT_PENDING": "Publisher has not received the draft's content yet",
    "RATE_LIMITED": "the provider has limited the rate of the account's posts",
    "RETRY": "the last attempt has failed, and another one follows",
    "CREDENTIALS_UNREADABLE": "Publisher cannot read the account's stored credentials",
    "PROVIDER_UNKNOWN": "Publisher does not know the account's provider",
    "NOT_APPROVED": "the draft is not approved",
    "WITHDRAWN": "the draft's content was withdrawn",
    "ACCOUNT_NOT_CONNECTED": "the account is not connected",
    "CHANNEL_NOT_OFFERED": "the account does not offer the channel; UpdateAccount changes that",
    "ORGANIZATION_ON_HOLD": "Publisher holds all posts of the organization; ListHolds shows why",
    "PROVIDER_ON_HOLD": "Publisher holds the organization's posts at the account's provider; ListHolds shows why",
    "BRAND_ON_HOLD": "Publisher holds the posts of the draft's brand; ListHolds shows why",
    "CAMPAIGN_ON_HOLD": "Publisher holds the messages of the draft's campaign; ListHolds shows why",
    "ACCOUNT_ON_HOLD": "Publisher holds the account's posts; ListHolds shows why",
    "DESTINATION_INACTIVE": "no post goes to this destination; ListDestinations shows why",
    "ACCOUNT_DISABLED": "the account's schedule is disabled",
    "SEND_WINDOW": "the account's send window is closed",
    "DAILY_CAP": "the account's daily cap is reached",
    "PROVIDER_QUOTA": "the provider takes no more of the account's posts on this channel for now",
    "SPACING": "the account has sent something a short while ago",
    "RESEND_REFUSED": "the post may be out, and the provider refuses to take it again",
    "ATTEMPTS_EXHAUSTED": "the post may be out, and no attempt is left",
    "CONTENT_LOST": "the post may be out, and what was sent is lost, so it cannot be sent again",
}
# Publisher checks these when a post is due; until then its job says nothing about them.
_UNCHECKED = frozenset({None, JobState.PENDING, JobState.SCHEDULED, JobState.READY})

# An attempt has begun, or the post has ended: what holds up an account holds up no such post.
STARTED = ENDED | {JobState.SENDING, JobState.UNKNOWN}
# Publisher looks again now and then, but nobody knows when these end.
_ENDLESS = frozenset({"CONTENT_PENDING", "CREDENTIALS_UNREADABLE", "PROVIDER_UNKNOWN"})


class Obstacle(NamedTuple):
    """Something that keeps a slot, or one of its targets, from going out; `clear_time` is its end, if it is known."""

    reason: str
    message: str
    clear_time: datetime | None = None
    target: SlotTarget | None = None


def obstacles(slot: QueueSlot, known: Circumstances, *, now: datetime) -> tuple[Obstacle, ...]:
    """Returns what is known to keep the slot from going out: first what lasts until somebody acts, NOT_DUE last."""
    if slot.state not in LIVE:
        return ()
    return (*_of_account(slot, known), *_of_draft(slot, known), *_of_posts(slot, known), *_not_due(slot, now))


def _of_account(slot: QueueSlot, known: Circumstances) -> Iterator[Obstacle]:
    if all(target.job_state in STARTED for target in slot.targets):
        return
    if known.pause_time:
        yield Obstacle("QUEUE_PAUSED", _pause(known, known.pause_time))
    if known.is_disabled and slot.state is SlotState.SCHEDULED:
        yield Obstacle("SCHEDULE_DISABLED", "the account's schedule is disabled")
    if known.is_connected is False:
        yield Obstacle("ACCOUNT_NOT_CONNECTED", _BY_REASON["ACCOUNT_NOT_CONNECTED"])
    if _is_held_back(slot, known):
        yield Obstacle("HELD_BACK", "too many of the account's posts have no answer from Publisher yet")


def _pause(known: Circumstances, pause_time: datetime) -> str:
    by = f" by {known.pauser}" if known.pauser else ""
    why = f": {known.pause_reason}" if known.pause_reason else ""
    return f"the queue has been paused{by} since {instant(pause_time)}{why}"


def _is_held_back(slot: QueueSlot, known: Circumstances) -> bool:
    """Returns whether dispatch has passed the slot over and looks at its account again later.

    It never does so without this reason: an account's next due time is otherwise not later than its first slot.
    """
    if slot.state is not SlotState.SCHEDULED or known.is_held_up or known.next_due_time is None:
        return False
    return known.next_due_time > slot.schedule_time


def _of_draft(slot: QueueSlot, known: Circumstances) -> Iterator[Obstacle]:
    if known.is_approved is False and all(target.job_state in _UNCHECKED for target in slot.targets):
        yield Obstacle("NOT_APPROVED", _BY_REASON["NOT_APPROVED"])


def _of_posts(slot: QueueSlot, known: Circumstances) -> Iterator[Obstacle]:
    for target in slot.targets:
        reason = target.state_reason
        is_said = reason == "ACCOUNT_NOT_CONNECTED" and known.is_connected is False
        if reason and not is_said and target.job_state not in ENDED:
            yield Obstacle(reason, _message(target), _clear_time(target), target)


def _clear_time(target: SlotTarget) -> datetime | None:
    ends = target.job_state is JobState.WAITING and target.state_reason not in _ENDLESS
    return target.next_action_time if ends else None


def _message(target: SlotTarget) -> str:
    text = _BY_REASON.get(target.state_reason, f"Publisher says {target.state_reason}")
    return f"{text} ({target.error_message})" if target.error_message else text


def _not_due(slot: QueueSlot, now: datetime) -> Iterator[Obstacle]:
    if now < slot.schedule_time:
        yield Obstacle("NOT_DUE", "its time has not come", slot.schedule_time)
