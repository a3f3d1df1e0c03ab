"""Drafts, as the calls of DraftsService give and show them."""

from collections.abc import Iterable
from datetime import datetime

from google.protobuf.field_mask_pb2 import FieldMask

from drafts_service.domain.account import Obstacles, shown_state, state_reason
from drafts_service.domain.draft import (
    Change,
    DraftKey,
    DraftTargets,
    DraftView,
    GivenApproval,
    GivenDraft,
    Placement,
    RequestedTime,
    UpdatedDraft,
)
from drafts_service.domain.post_job import JobState, PostJob, shown_follow_ups, shown_targets
from drafts_service.domain.slot_refusal import SlotRefusal, standing
from drafts_service.domain.target import Target
from drafts_service.wire.contents import given_content
from drafts_service.wire.targets import target_message, targets
from drafts_service.wire.texts import LONGEST_MESSAGE
from postflow.drafts.v1 import draft_pb2, draft_targets_service_pb2
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
from servicekit.faults import Fault, InvalidField
from servicekit.timestamps import moment, timestamp

_CHANGEABLE = (
    "content",
    "content.text",
    "content.hashtags",
    "content.channel_texts",
    "content.title",
    "content.link",
    "content.media",
    "content.channel_media",
    "content.follow_ups",
    "targets",
    "requested_time",
    "category_id",
    "brand_id",
)


def given_draft(draft: draft_pb2.Draft, draft_id: str) -> GivenDraft:
    placement = Placement(requested_time=_requested_time(draft), category_id=draft.category_id, brand_id=draft.brand_id)
    return GivenDraft(
        id=draft_id, content=given_content(draft.content), targets=targets(draft.targets), placement=placement
    )


def given_approval(message: ApproveDraftRequest | DraftToApprove, approver: str) -> GivenApproval:
    return GivenApproval(
        draft_id=message.draft_id, content_digest=message.content_digest, etag=message.etag, approver=approver
    )


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
    given = given_content(draft.content)
    return Change(
        text=given.text if paths & {"content", "content.text"} else None,
        hashtags=given.hashtags if paths & {"content", "content.hashtags"} else None,
        channel_texts=given.channel_texts if paths & {"content", "content.channel_texts"} else None,
        title=given.title if paths & {"content", "content.title"} else None,
        link=given.link if paths & {"content", "content.link"} else None,
        media=given.media if paths & {"content", "content.media"} else None,
        channel_media=given.channel_media if paths & {"content", "content.channel_media"} else None,
        follow_ups=given.follow_ups if paths & {"content", "content.follow_ups"} else None,
        targets=targets(draft.targets) if "targets" in paths else None,
        requested_time=RequestedTime(_requested_time(draft)) if "requested_time" in paths else None,
        category_id=draft.category_id if "category_id" in paths else None,
        brand_id=draft.brand_id if "brand_id" in paths else None,
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
                targets=map(target_message, draft.targets),
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
    message.targets.extend([target_message(target) for target in draft.targets])
    message.target_states.extend(
        [
            _target_state(target, job, shown_follow_ups(target, view.jobs), draft.obstacles)
            for target, job in shown_targets(draft.targets, view.jobs)
        ]
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
                message=outcome.message[:LONGEST_MESSAGE],
                field=outcome.violations[0].field if outcome.violations else "",
            )
        )
    return DraftResult(draft=_summary(outcome))


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


def _target_state(
    target: Target, job: PostJob | None, follow_ups: Iterable[PostJob], obstacles: Obstacles
) -> draft_pb2.TargetState:
    reason = state_reason(target, job, obstacles)
    if job is None:
        return draft_pb2.TargetState(target=target_message(target), state_reason=reason)
    return draft_pb2.TargetState(
        target=target_message(target),
        post_job_id=job.id,
        post_job_state=job.state,
        # A canceled job keeps the time of the slot that it had.
        schedule_time=None if job.state is JobState.CANCELED else timestamp(job.schedule_time),
        publish_time=timestamp(job.publish_time),
        external_url=job.external_url,
        error_message=job.error_message,
        state_reason=reason,
        follow_ups=map(_follow_up_state, follow_ups),
    )


def _follow_up_state(job: PostJob) -> draft_pb2.FollowUpState:
    return draft_pb2.FollowUpState(
        part=job.part,
        post_job_id=job.id,
        post_job_state=job.state,
        state_reason=job.state_reason,
        error_message=job.error_message,
        external_url=job.external_url,
        publish_time=timestamp(job.publish_time),
    )
