"""Replays: the call ReplayPostJobEvents."""

from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from publisher_service.domain.replay import Replay
from publisher_service.wire.posts import states_from
from servicekit.faults import InvalidField
from servicekit.timestamps import moment


def replay_from(request: pb.ReplayPostJobEventsRequest) -> Replay:
    """Translates a request. Raises InvalidField."""
    if request.draft_id and not request.organization_id:
        raise InvalidField("organization_id", "is required with a draft")
    return Replay(
        organization_id=request.organization_id,
        draft_id=request.draft_id,
        changed_since=moment(request.changed_since) if request.HasField("changed_since") else None,
        states=states_from(request.states),
    )
