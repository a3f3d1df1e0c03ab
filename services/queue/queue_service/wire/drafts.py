"""Drafts, as Drafts answers and announces them."""

from postflow.drafts.v1 import draft_pb2, drafts_events_pb2
from queue_service.domain.draft import Draft, SavedDraft
from queue_service.wire.required import required
from queue_service.wire.targets import targets


def draft(organization_id: str, message: draft_pb2.Draft) -> Draft:
    return Draft(
        organization_id=organization_id, id=message.id, revision=message.revision, targets=targets(message.targets)
    )


def saved_draft(message: drafts_events_pb2.DraftSaved) -> SavedDraft:
    return SavedDraft(
        draft=Draft(
            organization_id=required(message.organization_id, "organization_id"),
            id=required(message.draft_id, "draft_id"),
            revision=message.revision,
            targets=targets(message.targets),
        ),
        version=message.version,
    )
