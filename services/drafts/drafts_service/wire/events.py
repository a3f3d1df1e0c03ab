"""Events that Drafts announces and follows, and what Publisher answers."""

from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.draft import Draft
from drafts_service.domain.post_job import JobState, PostJob, PostJobEvent
from drafts_service.domain.slot_refusal import RefusedSlot, SlotRefusal
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire.targets import target_from, target_message
from drafts_service.wire.texts import LONGEST_MESSAGE
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import drafts_events_pb2
from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2, social_account_pb2
from postflow.publisher.v1.publisher_service_pb2 import (
    PublishedTarget,
    WithdrawContentResponse,
)
from postflow.queue.v1 import queue_events_pb2
from servicekit.faults import InvalidRequest
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment, timestamp
from topology import events_subject

_JOB_STATES = {
    number: JobState(name.removeprefix("POST_JOB_STATE_"))
    for name, number in post_job_pb2.PostJobState.items()
    if number != post_job_pb2.POST_JOB_STATE_UNSPECIFIED
}


_ACCOUNT_STATES = {
    social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED: AccountState.CONNECTED,
    social_account_pb2.SOCIAL_ACCOUNT_STATE_DISCONNECTED: AccountState.DISCONNECTED,
}


_EVENT_KINDS = {
    number: name.removeprefix("POST_JOB_EVENT_KIND_")
    for name, number in publisher_events_pb2.PostJobEventKind.items()
    if number != publisher_events_pb2.POST_JOB_EVENT_KIND_UNSPECIFIED
}


# Characters; the archived event keeps the full text.
_LONGEST_ERROR = 1000


def draft_saved(draft: Draft, traceparent: str = "") -> Announcement:
    """Returns the announcement; it gets the current trace unless another one is given."""
    return Announcement(
        traceparent=traceparent,
        subject=events_subject("drafts", "draft"),
        organization_id=draft.organization_id,
        aggregate_id=draft.id,
        message=drafts_events_pb2.DraftSaved(
            organization_id=draft.organization_id,
            draft_id=draft.id,
            version=draft.version,
            revision=draft.revision,
            content=draft.body.encoded,
            content_digest=draft.body.digest,
            approved=draft.approval is not None,
            targets=map(target_message, draft.targets),
            requested_time=timestamp(draft.placement.requested_time),
            category_id=draft.placement.category_id,
            brand_id=draft.placement.brand_id,
        ),
    )


def refused_slot(message: queue_events_pb2.SlotRefused) -> RefusedSlot:
    if not (message.organization_id and message.draft_id and message.social_account_id and message.reason):
        raise InvalidRequest("MALFORMED_EVENT", "a SlotRefused without its draft, account or reason")
    return RefusedSlot(
        organization_id=message.organization_id,
        draft_id=message.draft_id,
        refusal=SlotRefusal(
            social_account_id=message.social_account_id,
            draft_version=message.draft_version,
            schedule_time=moment(message.schedule_time),
            reason=message.reason,
            message=message.message[:LONGEST_MESSAGE],
            create_time=moment(message.create_time),
        ),
    )


def post_job_event(event: bus_pb2.Event, changed: publisher_events_pb2.PostJobChanged) -> PostJobEvent:
    """Raises InvalidRequest for an event that this release cannot read: a newer one can redrive the dead letter."""
    job = changed.post_job
    if not (job.id and job.draft_id and changed.organization_id == event.organization_id):
        raise InvalidRequest("MALFORMED_EVENT", "a PostJobChanged without its post job, draft or organization")
    if job.state not in _JOB_STATES:
        raise InvalidRequest("MALFORMED_EVENT", f"unknown state {job.state} of a post job")
    return PostJobEvent(
        organization_id=changed.organization_id,
        id=job.id,
        draft_id=job.draft_id,
        version=job.version,
        target=target_from(job.target),
        state=_JOB_STATES[job.state],
        state_reason=job.state_reason,
        schedule_time=moment(job.schedule_time) if job.HasField("schedule_time") else None,
        publish_time=moment(job.publish_time) if job.HasField("publish_time") else None,
        external_url=job.external_url,
        error_message=job.error_message[:_LONGEST_ERROR],
        part=job.part,
        kind=_EVENT_KINDS.get(changed.kind, str(changed.kind)),
        payload=event.payload,
        occur_time=moment(event.occur_time),
    )


def announced_account(
    changed: publisher_events_pb2.SocialAccountConnected | publisher_events_pb2.SocialAccountDisconnected,
) -> Account:
    return account(changed.organization_id, changed.social_account)


def account(organization_id: str, message: social_account_pb2.SocialAccount) -> Account:
    if not message.id or message.state not in _ACCOUNT_STATES:
        raise InvalidRequest("MALFORMED_EVENT", "a social account without its id or with an unknown state")
    return Account(
        organization_id=organization_id,
        id=message.id,
        version=message.version,
        state=_ACCOUNT_STATES[message.state],
        provider=message.provider,
    )


def withdrawal_answer(
    organization_id: str, draft_id: str, below: int, message: WithdrawContentResponse
) -> WithdrawalAnswer:
    return WithdrawalAnswer(
        below=below,
        in_flight=tuple(message.in_flight_post_job_ids),
        published=tuple(_published(organization_id, draft_id, each) for each in message.published),
    )


def _published(organization_id: str, draft_id: str, message: PublishedTarget) -> PostJob:
    return PostJob(
        organization_id=organization_id,
        id=message.post_job_id,
        draft_id=draft_id,
        version=message.version,
        target=target_from(message.target),
        state=JobState.PUBLISHED,
        schedule_time=moment(message.schedule_time) if message.HasField("schedule_time") else None,
        publish_time=moment(message.publish_time),
        external_url=message.external_url,
        part=message.part,
    )
