"""Post jobs: the calls of PublisherService, and the event about a job."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from channels import Action, action_of
from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.attempt import Attempt
from publisher_service.domain.post_job import EventKind, JobState, PostJob, expected_time, kind_of
from publisher_service.domain.resolution import Resolution, Said
from publisher_service.domain.withdrawal import Withdrawal
from publisher_service.wire.given_texts import require_web_address, require_words
from publisher_service.wire.targets import target_message
from servicekit.faults import InvalidField
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment, put, timestamp
from topology import events_subject

# The generated stubs say that Value returns an int, and that a field takes the enum.
_STATES: dict[str, post_job_pb2.PostJobState] = {
    state: cast(post_job_pb2.PostJobState, post_job_pb2.PostJobState.Value(f"POST_JOB_STATE_{state}"))
    for state in JobState
}
_STATES_BACK: dict[int, JobState] = {_STATES[state]: state for state in JobState}
ACTIONS = {action: cast(post_job_pb2.Action, post_job_pb2.Action.Value(f"ACTION_{action}")) for action in Action}
_KINDS = {
    kind: cast(
        publisher_events_pb2.PostJobEventKind,
        publisher_events_pb2.PostJobEventKind.Value(f"POST_JOB_EVENT_KIND_{kind}"),
    )
    for kind in EventKind
}
_SAID = {
    Said.PUBLISHED: pb.RESOLVE_OUTCOME_PUBLISHED,
    Said.NOT_PUBLISHED: pb.RESOLVE_OUTCOME_NOT_PUBLISHED,
}


def states_from(numbers: Sequence[int]) -> tuple[JobState, ...]:
    """Skips numbers that this release does not know."""
    return tuple(_STATES_BACK[number] for number in numbers if number in _STATES_BACK)


def resolution_from(request: pb.ResolvePostJobRequest) -> Resolution:
    """Translates what a person says. Raises InvalidField if it contradicts itself."""
    is_out = request.outcome == pb.RESOLVE_OUTCOME_PUBLISHED
    if is_out and not (request.external_id.strip() or request.external_url.strip()):
        raise InvalidField("external_id", "must be given, or external_url, for a post that is out")
    if not is_out and (request.external_id or request.external_url or request.HasField("publish_time")):
        raise InvalidField("outcome", "a post that is not out has no identifier, address or time")
    return Resolution(
        outcome=Said.PUBLISHED if is_out else Said.NOT_PUBLISHED,
        external_id=request.external_id,
        external_url=require_web_address("external_url", request.external_url),
        publish_time=moment(request.publish_time) if request.HasField("publish_time") else None,
        resolver=require_words("resolver", request.resolver),
        note=request.note,
    )


def get_post_job_response(
    job: PostJob, attempts: Sequence[Attempt], said: Sequence[tuple[int, Resolution, datetime]]
) -> pb.GetPostJobResponse:
    return pb.GetPostJobResponse(
        post_job=post_job(job),
        attempts=map(_attempt, attempts),
        resolutions=[_resolution(*each) for each in said],
    )


def list_post_jobs_response(jobs: Sequence[PostJob], next_page_token: str) -> pb.ListPostJobsResponse:
    return pb.ListPostJobsResponse(post_jobs=map(post_job, jobs), next_page_token=next_page_token)


def resolve_post_job_response(job: PostJob) -> pb.ResolvePostJobResponse:
    return pb.ResolvePostJobResponse(post_job=post_job(job))


def withdraw_response(withdrawal: Withdrawal) -> pb.WithdrawContentResponse:
    if withdrawal.published:
        outcome = pb.WITHDRAW_OUTCOME_PUBLISHED
    elif withdrawal.in_flight:
        outcome = pb.WITHDRAW_OUTCOME_TOO_LATE
    else:
        outcome = pb.WITHDRAW_OUTCOME_WITHDRAWN
    return pb.WithdrawContentResponse(
        outcome=outcome,
        in_flight_post_job_ids=withdrawal.in_flight,
        published=map(_published_target, withdrawal.published),
    )


def post_job_changed(job: PostJob, kind: EventKind | None = None) -> Announcement:
    """Announces the job as it is; `kind` defaults to that of its state."""
    message = publisher_events_pb2.PostJobChanged(
        organization_id=job.organization_id, kind=_KINDS[kind or kind_of(job.state)]
    )
    _write(message.post_job, job)
    return Announcement(
        subject=events_subject("publisher", "post_job"),
        organization_id=job.organization_id,
        aggregate_id=job.id,
        message=message,
        traceparent=job.traceparent,
    )


def post_job(job: PostJob) -> post_job_pb2.PostJob:
    message = post_job_pb2.PostJob()
    _write(message, job)
    return message


def _write(message: post_job_pb2.PostJob, job: PostJob) -> None:
    """Fills a message in place: one that is made and then copied into another costs three times as much."""
    message.id = job.id
    message.draft_id = job.draft_id
    message.target.social_account_id = job.target.social_account_id
    message.target.channel = job.target.channel
    message.target.destination = job.target.destination
    message.state = _STATES.get(job.state, post_job_pb2.POST_JOB_STATE_UNSPECIFIED)
    message.state_reason = job.state_reason
    message.action = ACTIONS[action_of(job.target.channel, job.target.destination)]
    message.version = job.version
    message.run = job.run
    message.slot_id = job.slot_id
    message.slot_revision = job.slot_revision
    message.slot_sequence = job.slot_sequence
    message.attempts = job.attempts
    message.content_revision = job.content_revision
    message.external_id = job.external_id
    message.external_url = job.external_url
    message.evidence_kind = job.evidence_kind
    message.error_reason = job.error_reason
    message.error_message = job.error_message
    message.target_month = job.target_month
    message.in_doubt = job.in_doubt
    message.publish_now = job.is_sent_now
    message.brand_id = job.brand_id
    message.campaign_id = job.campaign_id
    if job.part or job.parts:
        message.part = job.part
        message.parts = job.parts
        message.follows = job.follows
    put(message.create_time, job.create_time)
    put(message.update_time, job.update_time)
    put(message.schedule_time, job.schedule_time)
    put(message.not_after, job.not_after)
    put(message.next_action_time, job.next_action_time)
    put(message.expected_time, expected_time(job))
    put(message.unknown_until, job.unknown_until)
    put(message.publish_time, job.publish_time)
    put(message.last_attempt_time, job.last_attempt_time)


def _published_target(job: PostJob) -> pb.PublishedTarget:
    return pb.PublishedTarget(
        post_job_id=job.id,
        target=target_message(job.target),
        content_revision=job.content_revision,
        external_id=job.external_id,
        external_url=job.external_url,
        version=job.version,
        schedule_time=timestamp(job.schedule_time),
        publish_time=timestamp(job.publish_time),
        part=job.part,
    )


def _attempt(attempt: Attempt) -> post_job_pb2.Attempt:
    return post_job_pb2.Attempt(
        run=attempt.run,
        number=attempt.number,
        state=attempt.state,
        idempotency_key=attempt.idempotency_key,
        content_revision=attempt.content_revision,
        external_id=attempt.external_id,
        error_reason=attempt.error_reason,
        error_message=attempt.error_message,
        start_time=timestamp(attempt.start_time),
        end_time=timestamp(attempt.end_time),
    )


def _resolution(run: int, said: Resolution, time: datetime) -> pb.Resolution:
    return pb.Resolution(
        run=run,
        outcome=_SAID[said.outcome],
        external_id=said.external_id,
        external_url=said.external_url,
        resolver=said.resolver,
        note=said.note,
        create_time=timestamp(time),
    )
