"""Post jobs of a restored database: how they take over what was announced since the copy, or are put in doubt."""

from dataclasses import replace
from datetime import datetime

from publisher_service.domain.claim import Command
from publisher_service.domain.doubt import unknown
from publisher_service.domain.follow_up import called
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import (
    ENDED_RUN,
    TIMED,
    WITH_NEXT_ACTION,
    JobState,
    PostJob,
    begun_again,
    newer_slot,
)
from publisher_service.domain.safe_mode import SafeMode

# What other services have seen lies less than this above the copy.
VERSION_LEAP = 1 << 20

_MAY_BE_SENT = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED})
_ATTEMPTED = frozenset({JobState.SENDING, JobState.UNKNOWN, JobState.NEEDS_ATTENTION, JobState.PUBLISHED})


def is_news(job: PostJob, seen: PostJob) -> bool:
    """Returns whether an announcement is newer than the job. Proof that it is out counts in any case."""
    if job.state is JobState.PUBLISHED:
        return False
    return seen.state is JobState.PUBLISHED or seen.version > job.version


def taken_over(job: PostJob, seen: PostJob, *, now: datetime) -> PostJob:
    """Returns the job as it was announced. What was being sent then is of unknown outcome now.

    This is no transition: the job has made those already, on the database that is lost.
    """
    state = _state_of(seen)
    is_known_slot = (seen.slot_id, seen.slot_revision) == (job.slot_id, job.slot_revision)
    is_moving = state in WITH_NEXT_ACTION
    return replace(
        job,
        version=max(job.version, seen.version) + 1,
        state=state,
        state_reason="" if state in (JobState.READY, JobState.UNKNOWN) else seen.state_reason,
        run=seen.run,
        slot_sequence=job.slot_sequence if is_known_slot else 0,
        slot_id=seen.slot_id,
        slot_revision=seen.slot_revision,
        schedule_time=seen.schedule_time,
        not_after=seen.not_after,
        next_action_time=(seen.next_action_time if state is JobState.WAITING else now) if is_moving else None,
        parked_on="",
        expected_time=None,
        attempts=seen.attempts,
        in_doubt=state is not JobState.PUBLISHED and (seen.in_doubt or state in _ATTEMPTED),
        unknown_until=None,
        content_revision=seen.content_revision,
        wanted_revision=max(job.wanted_revision, seen.content_revision),
        publish_time=seen.publish_time,
        external_id=seen.external_id,
        external_url=seen.external_url,
        evidence_kind=seen.evidence_kind,
        error_reason=seen.error_reason,
        error_message=seen.error_message,
        last_attempt_time=seen.last_attempt_time,
        target_month=seen.target_month or job.target_month,
        follows=seen.follows,
        update_time=now,
        **(called(seen.target, seen.run) if seen.follows else {}),
    )


def _state_of(seen: PostJob) -> str:
    """Returns the state of the job as it was announced; the claim says again why it is not sent."""
    if seen.state is JobState.SENDING:
        return JobState.UNKNOWN
    # A wait that an event ends, not a time: the restored database does not know where it waits for that.
    is_kept_back = seen.state is JobState.WAITING and seen.state_reason not in TIMED
    return JobState.READY if seen.state is JobState.BLOCKED or is_kept_back else seen.state


def was_attempted(job: PostJob) -> bool:
    """Returns whether the job, as it was announced, has an attempt that the copy may lack."""
    return job.state in _ATTEMPTED or job.in_doubt


def may_have_been_sent(job: PostJob, *, until: datetime) -> bool:
    """Returns whether the job, as the copy has it, may have been sent since: until then posts have been claimed."""
    return job.state in _MAY_BE_SENT and job.schedule_time is not None and job.schedule_time <= until


def lacks_slot(job: PostJob, sequence: int, slot_id: str, revision: int) -> bool:
    """Returns whether the slot is one that the job has not had, and could have started on."""
    if job.state in ENDED_RUN and (slot_id, revision) == (job.slot_id, job.slot_revision):
        return False
    is_waiting = job.state in ENDED_RUN or job.state in (JobState.PENDING, JobState.SCHEDULED)
    return is_waiting and newer_slot(job, sequence, slot_id, revision)


def with_command(job: PostJob, command: Command) -> PostJob:
    """Returns the job above the version that the command knows, with its slot if the job had not started on a newer.

    A newer slot than that of an ended run begins the next one, as its event would have.
    """
    if job.version <= command.known_job_version:
        job = replace(job, version=command.known_job_version + 1)
    if not lacks_slot(job, command.slot_sequence, command.slot_id, command.slot_revision):
        return job
    if job.state in ENDED_RUN:
        job = replace(begun_again(job), version=job.version + 1)
    return replace(
        job,
        state=JobState.SCHEDULED,
        state_reason="",
        slot_sequence=command.slot_sequence,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        max_attempts=command.max_attempts,
        wanted_revision=max(job.wanted_revision, command.content_revision),
        target_month=command.target_month or job.target_month,
        traceparent=command.traceparent,
    )


def sent_since(job: PostJob, mode: SafeMode) -> datetime:
    """Returns a time before which no attempt that the copy lacks can have begun.

    A job that the safe mode has made is older than its row.
    """
    if job.create_time < mode.enter_time:
        return max(job.create_time, mode.restored_time or job.create_time)
    return mode.restored_time or min(job.create_time, job.schedule_time or job.create_time)


def put_in_doubt(job: PostJob, *, policy: Policy, revision: int, now: datetime) -> PostJob:
    """Returns the job, of which an attempt may be lost with what is newer than the copy, to be looked up.

    An attempt stays for the resend if the post is proven absent. `revision` is that of the bytes that were sent.
    """
    ready = replace(job, state=JobState.SCHEDULED) if job.state is JobState.PENDING else job
    doubted = unknown(ready, policy=policy, now=now, last_attempt_time=now)
    return replace(
        doubted,
        # What others have seen of the job on the lost database must not hide from them what comes of it now.
        version=doubted.version + VERSION_LEAP,
        fence=job.fence + 1,
        attempts=min(job.attempts + 1, max(job.max_attempts - 1, 0)),
        content_revision=job.content_revision if job.in_doubt else revision,
        error_reason="RESTORED",
        error_message="the database was restored from an older copy: an attempt to send the post may be lost with it",
    )
