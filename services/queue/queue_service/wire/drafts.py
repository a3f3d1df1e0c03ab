"""Drafts, as Drafts answers and announces them."""

from collections.abc import Iterable

from postflow.drafts.v1 import draft_pb2, draft_targets_service_pb2, drafts_events_pb2
from queue_service.domain.draft import Draft, DraftKey, SavedDraft
from queue_service.wire.required import required
from queue_service.wire.targets import targets
from servicekit.timestamps import moment


def draft(organization_id: str, message: draft_pb2.Draft) -> Draft:
    return Draft(
        organization_id=organization_id,
        id=message.id,
        revision=message.revision,
        targets=targets(message.targets),
        category_id=message.category_id,
    )


def draft_names(keys: Iterable[DraftKey]) -> list[draft_targets_service_pb2.DraftName]:
    return [
        draft_targets_service_pb2.DraftName(organization_id=organization, draft_id=draft)
        for organization, draft in keys
    ]


def drafts_by_key(messages: Iterable[draft_targets_service_pb2.DraftTargets]) -> dict[DraftKey, Draft]:
    drafts = (
        Draft(
            organization_id=each.organization_id,
            id=each.draft_id,
            revision=each.revision,
            targets=targets(each.targets),
            category_id=each.category_id,
        )
        for each in messages
    )
    return {each.key: each for each in drafts}


def saved_draft(message: drafts_events_pb2.DraftSaved) -> SavedDraft:
    return SavedDraft(
        draft=Draft(
            organization_id=required(message.organization_id, "organization_id"),
            id=required(message.draft_id, "draft_id"),
            revision=message.revision,
            targets=targets(message.targets),
            category_id=message.category_id,
        ),
        version=message.version,
        is_approved=message.approved,
        requested_time=moment(message.requested_time) if message.HasField("requested_time") else None,
    )
