"""Refusals: a job is due and may not be sent."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.doubt import ended_unsent, needs_attention
from publisher_service.domain.limits import PARKING, action_of_job, parking_of
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    JobState,
    PostJob,
    Reason,
    begun_again,
    moved,
)

BLOCKING: Final[Mapping[Verdict, Reason]] = {
    Verdict.NOT_APPROVED: Reason.NOT_APPROVED,
    Verdict.WITHDRAWN: Reason.WITHDRAWN,
    Verdict.ACCOUNT_NOT_CONNECTED: Reason.ACCOUNT_NOT_CONNECTED,
    Verdict.CHANNEL_NOT_OFFERED: Reason.CHANNEL_NOT_OFFERED,
    Verdict.ORGANIZATION_ON_HOLD: Reason.ORGANIZATION_ON_HOLD,
    Verdict.PROVIDER_ON_HOLD: Reason.PROVIDER_ON_HOLD,
    Verdict.ACCOUNT_ON_HOLD: Reason.ACCOUNT_ON_HOLD,
    Verdict.BRAND_ON_HOLD: Reason.BRAND_ON_HOLD,
    Verdict.CAMPAIGN_ON_HOLD: Reason.CAMPAIGN_ON_HOLD,
    Verdict.ACCOUNT_DISABLED: Reason.ACCOUNT_DISABLED,
    Verdict.DESTINATION_INACTIVE: Reason.DESTINATION_INACTIVE,
}
# The post waits for the limit, and costs nothing meanwhile.
LIMITING: Final[Mapping[Verdict, Reason]] = {Verdict.SEND_WINDOW: Reason.SEND_WINDOW, **PARKING}
# These verdicts rest on contents, accounts, destinations and preparations, which the claim does not lock. A hold of an
# account is a fact of the locked gate, and no other hold can be put or released during a claim.
DOUBTED: Final = frozenset(
    {
        Verdict.CONTENT_PENDING,
        Verdict.CONTENT_LOST,
        Verdict.REMOVED,
        Verdict.NOT_APPROVED,
        Verdict.WITHDRAWN,
        Verdict.ACCOUNT_NOT_CONNECTED,
        Verdict.CHANNEL_NOT_OFFERED,
        Verdict.DESTINATION_INACTIVE,
        Verdict.MEDIA,
        Verdict.MEDIA_REFUSED,
    }
)
# The line of the account stands still until its gate changes or a hold is released.
STANDING: Final = frozenset(
    {
        Verdict.ACCOUNT_NOT_CONNECTED,
        Verdict.ORGANIZATION_ON_HOLD,
        Verdict.PROVIDER_ON_HOLD,
        Verdict.ACCOUNT_ON_HOLD,
        Verdict.ACCOUNT_DISABLED,
        Verdict.SEND_WINDOW,
    }
)
CHANGING: Final = (
    DOUBTED
    | STANDING
    | LIMITING.keys()
    | {
        Verdict.BRAND_ON_HOLD,
        Verdict.CAMPAIGN_ON_HOLD,
        Verdict.MISSED,
        Verdict.EXHAUSTED,
    }
)


def refused(
    job: PostJob,
    command: Command,
    verdict: Verdict,
    *,
    now: datetime,
    limit_time: datetime | None = None,
    error: tuple[str, str] | None = None,
) -> PostJob:
    """Returns the job as it waits, is blocked or has ended unsent; the same job if nothing changes.

    `limit_time` is when the limit that keeps it back may let it go; `error` is the provider's reason, and its words,
    for refusing to prepare the post.

    A job that waits or is blocked is released by an event. Its next action is at its latest time, when it is missed.
    """
    if job.state not in NOT_STARTED | ENDED_RUN:
        return job
    match verdict:
        case Verdict.MISSED:
            return ended_unsent(_taken_over(job, command), JobState.MISSED, now=now)
        case Verdict.REMOVED:
            taken = _taken_over(job, command)
            return ended_unsent(taken, JobState.CANCELED, now=now, reason=Reason.TARGET_REMOVED)
        case Verdict.WITHDRAWN if job.in_doubt:
            why = "the text that may have gone out is withdrawn: neither it nor a newer one may be sent"
            return needs_attention(_taken_over(job, command), why, now=now)
        case Verdict.EXHAUSTED | Verdict.MEDIA_REFUSED:
            return _failed(_taken_over(job, command), verdict, error, now)
        case Verdict.CONTENT_LOST:
            # Looked up at once. The sweep that hands it out sets the deadline, which depends on the provider.
            return moved(_taken_over(job, command), JobState.UNKNOWN, now=now, reason=Reason.CONTENT_LOST, until=now)
        case Verdict.CONTENT_PENDING | Verdict.MEDIA:
            state, why = JobState.WAITING, Reason(verdict.value)
        case Verdict.SEND_WINDOW | Verdict.DAILY_CAP | Verdict.PROVIDER_QUOTA | Verdict.SPACING:
            state, why = JobState.WAITING, LIMITING[verdict]
        case _:
            state, why = JobState.BLOCKED, BLOCKING[verdict]
    if _waits_so_already(job, state, why, command) and job.expected_time == limit_time:
        return job
    return moved(
        _taken_over(job, command),
        state,
        now=now,
        reason=why,
        until=command.not_after,
        parked_on=parking_of(verdict, action_of_job(job), job.target.channel),
        expected_time=limit_time,
    )


def _failed(job: PostJob, verdict: Verdict, error: tuple[str, str] | None, now: datetime) -> PostJob:
    if error is not None:
        job = replace(job, error_reason=error[0], error_message=error[1])
    return ended_unsent(job, JobState.FAILED, now=now, error_reason=job.error_reason or verdict.value)


def _waits_so_already(job: PostJob, state: JobState, reason: Reason, command: Command) -> bool:
    slot = (job.slot_id, job.slot_revision, job.next_action_time)
    same_slot = slot == (command.slot_id, command.slot_revision, command.not_after)
    return same_slot and (job.state, job.state_reason) == (state, reason)


def _taken_over(job: PostJob, command: Command) -> PostJob:
    return replace(
        begun_again(job),
        slot_sequence=command.slot_sequence,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        max_attempts=command.max_attempts,
        wanted_revision=command.content_revision,
        target_month=command.target_month or job.target_month,
        traceparent=command.traceparent,
    )
