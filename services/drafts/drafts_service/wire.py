"""Translates between protobuf and the domain, both ways; no other module knows both."""

from collections.abc import Iterable
from datetime import datetime

from google.protobuf.field_mask_pb2 import FieldMask

from drafts_service.domain.account import Account, AccountState, Obstacles, shown_state, state_reason
from drafts_service.domain.content import Body, ChannelText, Content
from drafts_service.domain.draft import (
    Change,
    Draft,
    DraftKey,
    DraftTargets,
    DraftView,
    GivenApproval,
    GivenDraft,
    Placement,
    RequestedTime,
    UpdatedDraft,
)
from drafts_service.domain.post_job import JobState, PostJob, PostJobEvent, shown_targets
from drafts_service.domain.slot_refusal import RefusedSlot, SlotRefusal, standing
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import draft_pb2, draft_targets_service_pb2, drafts_events_pb2
from postflow.drafts.v1.draft_targets_service_pb2 import FindDraftTargetsRequest, FindDraftTargetsResponse
from postflow.drafts.v1.drafts_service_pb2 import (
    ApproveDraftRequest,
    ApproveDraftResponse,
    BatchApproveDraftsResponse,
    BatchCreateDraftsResponse,
    CreateDraftResponse,
    DraftError,
    DraftResult,
    DraftToApprove,
    GetDraftResponse,
    UpdateDraftResponse,
)
from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2, social_account_pb2
from postflow.publisher.v1.publisher_service_pb2 import PublishedTarget, WithdrawContentResponse
from postflow.queue.v1 import queue_events_pb2
from postflow.target.v1 import target_pb2
from servicekit.faults import Fault, InvalidField, InvalidRequest
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
# Characters of an error in a batch: 200 of them fit into a response.
_LONGEST_MESSAGE = 500
_CHANGEABLE = (
    "content",
    "content.text",
    "content.hashtags",
    "content.channel_texts",
    "targets",
    "requested_time",
    "category_id",
    "brand_id",
)


def given_draft(draft: draft_pb2.Draft, draft_id: str) -> GivenDraft:
    placement = Placement(requested_time=_requested_time(draft), category_id=draft.category_id, brand_id=draft.brand_id)
    return GivenDraft(id=draft_id, content=content(draft.content), targets=targets(draft.targets), placement=placement)


def given_approval(message: ApproveDraftRequest | DraftToApprove, approver: str) -> GivenApproval:
    return GivenApproval(
        draft_id=message.draft_id, content_digest=message.content_digest, etag=message.etag, approver=approver
    )


def content(message: draft_pb2.DraftContent) -> Content:
    return Content(
        text=message.text,
        hashtags=tuple(message.hashtags),
        channel_texts=tuple(ChannelText(channel=each.channel, text=each.text) for each in message.channel_texts),
    )


def targets(messages: Iterable[target_pb2.Target]) -> tuple[Target, ...]:
    return tuple(map(_target, messages))


def draft_id(draft: draft_pb2.Draft) -> str:
    """Returns the id of the draft that an update names."""
    if not draft.id:
        raise InvalidField("draft.id", "is required")
    return draft.id


def change(draft: draft_pb2.Draft, mask: FieldMask) -> Change:
    if not mask.paths:
        raise InvalidField("update_mask", "names no field")
    for path in mask.paths:
        if path not in _CHANGEABLE:
            raise InvalidField("update_mask", f"{path!r} cannot be changed; {', '.join(_CHANGEABLE)} can")
    paths = set(mask.paths)
    given = content(draft.content)
    return Change(
        text=given.text if paths & {"content", "content.text"} else None,
        hashtags=given.hashtags if paths & {"content", "content.hashtags"} else None,
        channel_texts=given.channel_texts if paths & {"content", "content.channel_texts"} else None,
        targets=targets(draft.targets) if "targets" in paths else None,
        requested_time=RequestedTime(_requested_time(draft)) if "requested_time" in paths else None,
        category_id=draft.category_id if "category_id" in paths else None,
        brand_id=draft.brand_id if "brand_id" in paths else None,
    )


def encoded_body(content: Content) -> Body:
    message = draft_pb2.DraftContent(
        text=content.text,
        hashtags=content.hashtags,
        channel_texts=[draft_pb2.ChannelText(channel=each.channel, text=each.text) for each in content.channel_texts],
    )
    return Body.of(message.SerializeToString(deterministic=True))


def decoded_body(body: Body) -> Content:
    return content(draft_pb2.DraftContent.FromString(body.encoded))


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
            targets=map(_target_message, draft.targets),
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
            message=message.message[:_LONGEST_MESSAGE],
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
        target=_target(job.target),
        state=_JOB_STATES[job.state],
        state_reason=job.state_reason,
        schedule_time=moment(job.schedule_time) if job.HasField("schedule_time") else None,
        publish_time=moment(job.publish_time) if job.HasField("publish_time") else None,
        external_url=job.external_url,
        error_message=job.error_message[:_LONGEST_ERROR],
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
        organization_id=organization_id, id=message.id, version=message.version, state=_ACCOUNT_STATES[message.state]
    )


def withdrawal_answer(
    organization_id: str, draft_id: str, below: int, message: WithdrawContentResponse
) -> WithdrawalAnswer:
    return WithdrawalAnswer(
        below=below,
        in_flight=tuple(message.in_flight_post_job_ids),
        published=tuple(_published(organization_id, draft_id, each) for each in message.published),
    )


def create_draft_response(view: DraftView) -> CreateDraftResponse:
    return CreateDraftResponse(draft=draft_message(view))


def get_draft_response(view: DraftView) -> GetDraftResponse:
    return GetDraftResponse(draft=draft_message(view))


def update_draft_response(updated: UpdatedDraft) -> UpdateDraftResponse:
    return UpdateDraftResponse(draft=draft_message(updated), in_flight_post_job_ids=updated.in_flight)


def draft_keys(request: FindDraftTargetsRequest) -> list[DraftKey]:
    """Returns the drafts that a request names, of one tenant if it names that."""
    tenant = request.organization_id
    return [
        (each.organization_id, each.draft_id) for each in request.drafts if not tenant or each.organization_id == tenant
    ]


def find_draft_targets_response(drafts: Iterable[DraftTargets]) -> FindDraftTargetsResponse:
    return FindDraftTargetsResponse(
        drafts=[
            draft_targets_service_pb2.DraftTargets(
                organization_id=draft.key[0],
                draft_id=draft.key[1],
                revision=draft.revision,
                targets=map(_target_message, draft.targets),
                category_id=draft.category_id,
            )
            for draft in drafts
        ]
    )


def approve_draft_response(view: DraftView) -> ApproveDraftResponse:
    return ApproveDraftResponse(draft=draft_message(view))


def batch_create_drafts_response(outcomes: Iterable[DraftView | Fault]) -> BatchCreateDraftsResponse:
    return BatchCreateDraftsResponse(results=map(_draft_result, outcomes))


def batch_approve_drafts_response(outcomes: Iterable[DraftView | Fault]) -> BatchApproveDraftsResponse:
    return BatchApproveDraftsResponse(results=map(_draft_result, outcomes))


def draft_message(view: DraftView) -> draft_pb2.Draft:
    """Returns the draft as callers see it."""
    draft = view.draft
    message = _summary(view)
    message.content.ParseFromString(draft.body.encoded)
    message.targets.extend([_target_message(target) for target in draft.targets])
    message.target_states.extend(
        [_target_state(target, job, draft.obstacles) for target, job in shown_targets(draft.targets, view.jobs)]
    )
    message.slot_refusals.extend(map(_slot_refusal, standing(draft.refusals, draft.targets, view.jobs)))
    if draft.approval:
        message.approver = draft.approval.approver
    return message


def _summary(view: DraftView) -> draft_pb2.Draft:
    """Returns the fields whose size has a small bound: 200 of them fit into a response."""
    draft = view.draft
    state = shown_state(draft.folded.state, draft.targets, view.jobs, draft.obstacles)
    return draft_pb2.Draft(
        id=draft.id,
        revision=draft.revision,
        content_digest=draft.body.digest,
        approved=draft.approval is not None,
        approve_time=timestamp(draft.approval.time) if draft.approval else None,
        state=f"DRAFT_STATE_{state}",
        schedule_time=timestamp(draft.folded.schedule_time),
        publish_time=timestamp(draft.folded.publish_time),
        etag=draft.etag,
        create_time=timestamp(draft.create_time),
        update_time=timestamp(draft.update_time),
        requested_time=timestamp(draft.placement.requested_time),
        category_id=draft.placement.category_id,
        brand_id=draft.placement.brand_id,
    )


def _draft_result(outcome: DraftView | Fault) -> DraftResult:
    if isinstance(outcome, Fault):
        return DraftResult(
            error=DraftError(
                code=outcome.code,
                reason=outcome.reason,
                message=outcome.message[:_LONGEST_MESSAGE],
                field=outcome.violations[0].field if outcome.violations else "",
            )
        )
    return DraftResult(draft=_summary(outcome))


def _published(organization_id: str, draft_id: str, message: PublishedTarget) -> PostJob:
    return PostJob(
        organization_id=organization_id,
        id=message.post_job_id,
        draft_id=draft_id,
        version=message.version,
        target=_target(message.target),
        state=JobState.PUBLISHED,
        schedule_time=moment(message.schedule_time) if message.HasField("schedule_time") else None,
        publish_time=moment(message.publish_time),
        external_url=message.external_url,
    )


def _requested_time(draft: draft_pb2.Draft) -> datetime | None:
    return moment(draft.requested_time) if draft.HasField("requested_time") else None


def _slot_refusal(refusal: SlotRefusal) -> draft_pb2.SlotRefusal:
    return draft_pb2.SlotRefusal(
        social_account_id=refusal.social_account_id,
        schedule_time=timestamp(refusal.schedule_time),
        reason=refusal.reason,
        message=refusal.message,
        create_time=timestamp(refusal.create_time),
    )


def _target_state(target: Target, job: PostJob | None, obstacles: Obstacles) -> draft_pb2.TargetState:
    reason = state_reason(target, job, obstacles)
    if job is None:
        return draft_pb2.TargetState(target=_target_message(target), state_reason=reason)
    return draft_pb2.TargetState(
        target=_target_message(target),
        post_job_id=job.id,
        post_job_state=job.state,
        # A canceled job keeps the time of the slot that it had.
        schedule_time=None if job.state is JobState.CANCELED else timestamp(job.schedule_time),
        publish_time=timestamp(job.publish_time),
        external_url=job.external_url,
        error_message=job.error_message,
        state_reason=reason,
    )


def _target(message: target_pb2.Target) -> Target:
    return Target(social_account_id=message.social_account_id, channel=message.channel, destination=message.destination)


def _target_message(target: Target) -> target_pb2.Target:
    return target_pb2.Target(
        social_account_id=target.social_account_id, channel=target.channel, destination=target.destination
    )
