"""Events of Drafts and Queue, as Publisher reads them."""

import hashlib
from collections import Counter

from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import drafts_events_pb2
from postflow.queue.v1 import queue_events_pb2
from publisher_service.domain.plan import SavedDraft, Slot, local_month
from publisher_service.wire.contents import content_from
from publisher_service.wire.targets import target_from
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.timestamps import moment


def saved_draft_from(message: drafts_events_pb2.DraftSaved) -> SavedDraft:
    if hashlib.sha256(message.content).hexdigest() != message.content_digest:
        raise UnreadableMessage("the content of a DraftSaved does not match its digest")
    content = content_from(message.content)
    return SavedDraft(
        organization_id=message.organization_id,
        draft_id=message.draft_id,
        version=message.version,
        revision=message.revision,
        content=message.content,
        content_digest=message.content_digest,
        approved=message.approved,
        targets=tuple(target_from(target) for target in message.targets),
        brand_id=message.brand_id,
        campaign_id=message.campaign_id,
        follow_ups=Counter(each.channel for each in content.follow_ups),
    )


def slot_from(event: bus_pb2.Event, message: queue_events_pb2.SlotScheduled | queue_events_pb2.SlotMoved) -> Slot:
    """Reads either message: both carry the whole slot, and the revision says which is newer."""
    time = moment(message.schedule_time)
    return Slot(
        organization_id=message.organization_id,
        slot_id=message.slot_id,
        sequence=message.slot_sequence,
        revision=message.revision,
        draft_id=message.draft_id,
        targets=tuple(target_from(target) for target in message.targets),
        schedule_time=time,
        not_after=moment(message.not_after) if message.HasField("not_after") else None,
        target_month=local_month(time, message.time_zone),
        traceparent=event.traceparent,
        content_revision=message.content_revision if isinstance(message, queue_events_pb2.SlotScheduled) else 0,
    )
