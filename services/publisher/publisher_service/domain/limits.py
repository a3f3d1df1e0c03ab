"""Limits at send time: what an account may send in a day and how often, and where posts wait that are over it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from channels import KNOWN, Action, action_of
from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target

SPACED_POSTS = "spacing:POST"
SPACED_OUTREACH = "spacing:OUTREACH"
_CAPPED = "action:"
_CLOSED = "channel:"
_OFFERED = "offer:"
_ACTIONS: Mapping[str, Action] = {action.value: action for action in Action}
# The shortest time between two looks at a limit.
_SOON = timedelta(seconds=1)
# How many posts are left on a channel that is open again is not known before one of them has its answer.
_POSTS_OF_CHANNEL = 50
_NEXT_OF_CHANNEL = timedelta(seconds=5)


def _default_caps() -> Mapping[Action, int]:
    return {Action.EMAIL: 20, Action.MESSAGE: 50, Action.CONNECTION_REQUEST: 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitDefaults:
    """The limits of an account that has none of its own. An action without a cap has no default."""

    caps: Mapping[Action, int] = field(default_factory=_default_caps)
    # From the end of one outreach message of an account to the next.
    outreach_spacing: timedelta = timedelta(minutes=6)


DEFAULTS: Final = LimitDefaults()

PARKING: Mapping[Verdict, Reason] = {
    Verdict.DAILY_CAP: Reason.DAILY_CAP,
    Verdict.PROVIDER_QUOTA: Reason.PROVIDER_QUOTA,
    Verdict.SPACING: Reason.SPACING,
}
"""Verdicts that park a post: it leaves the line of its account, so that others pass."""


def action_of_target(target: Target) -> Action:
    return action_of(target.channel, target.destination)


def action_of_job(job: PostJob) -> Action:
    return action_of_target(job.target)


def counts_for_limits(job: PostJob) -> bool:
    """Returns whether the sends of a job count for caps and spacing: comments below a post do not.

    The claim's statement says the same in SQL.
    """
    return not job.part or action_of_job(job) is not Action.POST


def action_of_command(command: Command) -> Action:
    return action_of(command.target.channel, command.target.destination)


def parking_of(verdict: Verdict, action: Action, channel: str) -> str:
    """Returns the limit on which a post is parked; empty if the verdict parks none."""
    match verdict:
        case Verdict.DAILY_CAP:
            return cap_of(action)
        case Verdict.PROVIDER_QUOTA:
            return f"{_CLOSED}{channel}"
        case Verdict.CHANNEL_NOT_OFFERED:
            return offer_of(channel)
        case Verdict.SPACING:
            return SPACED_POSTS if action is Action.POST else SPACED_OUTREACH
        case _:
            return ""


def cap_of(action: Action) -> str:
    """Returns the limit on which posts over the daily cap of the action are parked."""
    return f"{_CAPPED}{action}"


def offer_of(channel: str) -> str:
    """Returns where posts to a channel are parked that their account does not offer."""
    return f"{_OFFERED}{channel}"


def is_offer(parked_on: str) -> bool:
    return parked_on.startswith(_OFFERED)


def capped_action(parked_on: str) -> Action | None:
    """Returns the action whose daily cap parks posts there; None for another limit."""
    name = parked_on.removeprefix(_CAPPED)
    return _ACTIONS.get(name) if name != parked_on else None


def closed_channel(parked_on: str) -> str:
    """Returns the channel whose quota parks posts there; empty for another limit."""
    return parked_on.removeprefix(_CLOSED) if parked_on.startswith(_CLOSED) else ""


def is_parked_alike(job: PostJob, parked_on: str) -> bool:
    """Returns whether this limit keeps the job back, too."""
    action = action_of_job(job)
    return parked_on in {parking_of(verdict, action, job.target.channel) for verdict in PARKING}


def is_parked(job: PostJob) -> bool:
    """Returns whether the job stands where it was parked.

    A previous release moves jobs on and does not know that they are parked.
    """
    if job.state_reason == Reason.CHANNEL_NOT_OFFERED:
        return job.state is JobState.BLOCKED
    return job.state is JobState.WAITING and job.state_reason in PARKING.values()


def channels_of(action: Action) -> Sequence[str]:
    return [channel for channel in KNOWN if action_of(channel) is action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The number of parked posts that a limit lets go, and when it is looked at again."""

    posts: int
    next_look: datetime


def room_of_spacing(until: datetime | None, spacing: timedelta | None, *, now: datetime) -> Room:
    """Returns the room of a spacing that lasts until then: one post, and the next one at the earliest behind it."""
    if until is not None and until > now:
        return Room(posts=0, next_look=until)
    return Room(posts=1, next_look=now + max(spacing or _SOON, _SOON))


def room_of_cap(left: int, waiting: int, *, day_end: datetime, again: timedelta, now: datetime) -> Room:
    """Returns the room of a cap of which so much is left, while others of the action wait already.

    Until it is used up it is looked at again: of those that wait, some may never be sent.
    """
    if left <= 0:
        return Room(posts=0, next_look=day_end)
    return Room(posts=max(left - waiting, 0), next_look=min(now + max(again, _SOON), day_end))


def room_of_channel(until: datetime | None, *, now: datetime) -> Room:
    """Returns the room of a channel that is closed until then: a few posts at a time, for it may close again."""
    if until is not None and until > now:
        return Room(posts=0, next_look=until)
    return Room(posts=_POSTS_OF_CHANNEL, next_look=now + _NEXT_OF_CHANNEL)
