"""Post jobs, as Publisher announces them."""

from datetime import datetime

from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2
from queue_service.domain.job import JobState
from queue_service.domain.settlement import JobReport
from queue_service.wire.required import required
from servicekit.faults import InvalidRequest
from servicekit.timestamps import moment

_STATES = {
    number: JobState(name.removeprefix("POST_JOB_STATE_"))
    for name, number in post_job_pb2.PostJobState.items()
    if number != post_job_pb2.POST_JOB_STATE_UNSPECIFIED
}


def restored_time(message: publisher_events_pb2.PublisherRestored) -> datetime | None:
    return moment(message.restored_time) if message.HasField("restored_time") else None


def job_report(message: publisher_events_pb2.PostJobChanged) -> JobReport:
    """Decodes a report. Refuses an unknown state: the consumer parks the event, and a newer release can redrive it."""
    return report_of(required(message.organization_id, "organization_id"), message.post_job)


def report_of(organization_id: str, job: post_job_pb2.PostJob) -> JobReport:
    state = _STATES.get(job.state)
    if state is None:
        raise InvalidRequest("MALFORMED_EVENT", f"a PostJobChanged with the unknown state {job.state}")
    target = job.target
    return JobReport(
        organization_id=organization_id,
        slot_id=job.slot_id,
        slot_revision=job.slot_revision,
        draft_id=required(job.draft_id, "draft_id"),
        social_account_id=required(target.social_account_id, "social_account_id"),
        channel=target.channel,
        destination=target.destination,
        job_id=required(job.id, "id"),
        state=state,
        version=job.version,
        external_url=job.external_url,
        error_message=job.error_message,
        state_reason=job.state_reason,
        next_action_time=_next_action_time(job),
        publish_time=moment(job.publish_time) if job.HasField("publish_time") else None,
        publish_now=job.publish_now,
        part=job.part,
    )


def accepted_commands(message: publisher_events_pb2.CommandsAccepted) -> list[JobReport]:
    """Reads one report per command: its job is READY."""
    organization_id = required(message.organization_id, "organization_id")
    return [
        JobReport(
            organization_id=organization_id,
            slot_id=required(each.slot_id, "slot_id"),
            slot_revision=each.slot_revision,
            draft_id=required(each.draft_id, "draft_id"),
            social_account_id=required(each.target.social_account_id, "social_account_id"),
            channel=each.target.channel,
            destination=each.target.destination,
            job_id=required(each.post_job_id, "post_job_id"),
            state=JobState.READY,
            version=each.version,
            external_url="",
            error_message="",
            state_reason="",
            next_action_time=None,
            publish_time=None,
            publish_now=None,
        )
        for each in message.commands
    ]


def _next_action_time(job: post_job_pb2.PostJob) -> datetime | None:
    """Returns when the post may go out, if that is known: Publisher itself may act later, as when a limit is over."""
    for name in ("expected_time", "next_action_time"):
        if job.HasField(name):
            return moment(getattr(job, name))
    return None
