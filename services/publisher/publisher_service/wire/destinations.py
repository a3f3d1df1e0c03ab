"""Destinations: the calls of PublisherService that list and update them."""

from collections.abc import Sequence
from dataclasses import replace

import channels
from postflow.publisher.v1 import destination_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.destination import Destination, DestinationChange, DestinationFilter, DestinationState
from publisher_service.domain.post_job import Target
from publisher_service.wire.targets import target_from, target_message
from servicekit.faults import InvalidField
from servicekit.timestamps import timestamp

_STATES: dict[str, destination_pb2.DestinationState] = {
    DestinationState.ACTIVE: destination_pb2.DESTINATION_STATE_ACTIVE,
    DestinationState.INACTIVE: destination_pb2.DESTINATION_STATE_INACTIVE,
}


def destination_filter_from(request: pb.ListDestinationsRequest) -> DestinationFilter:
    return DestinationFilter(
        organization_id=request.organization_id,
        social_account_id=request.social_account_id,
        states=tuple(state for state in DestinationState if _STATES[state] in request.states),
    )


def destination_change_from(request: pb.UpdateDestinationRequest) -> DestinationChange:
    """Translates a request. Raises InvalidField without a destination, and for an unknown channel or state."""
    state = next((state for state in DestinationState if _STATES[state] == request.state), None)
    if state is None:
        raise InvalidField("state", "is not known here")
    return DestinationChange(
        organization_id=request.organization_id,
        target=_target_from(request),
        state=state,
        note=request.note,
        etag=request.etag,
    )


def list_destinations_response(found: Sequence[Destination], next_page_token: str) -> pb.ListDestinationsResponse:
    return pb.ListDestinationsResponse(destinations=map(_destination, found), next_page_token=next_page_token)


def update_destination_response(destination: Destination) -> pb.UpdateDestinationResponse:
    return pb.UpdateDestinationResponse(destination=_destination(destination))


def _target_from(request: pb.UpdateDestinationRequest) -> Target:
    if not request.target.destination:
        raise InvalidField("target.destination", "must not be empty: the feed of an account is no destination")
    try:
        return replace(target_from(request.target), channel=channels.normalise(request.target.channel))
    except channels.UnknownChannel as error:
        raise InvalidField("target.channel", str(error), reason="UNKNOWN_CHANNEL") from None


def _destination(destination: Destination) -> destination_pb2.Destination:
    return destination_pb2.Destination(
        target=target_message(destination.target),
        state=_STATES.get(destination.state, destination_pb2.DESTINATION_STATE_UNSPECIFIED),
        state_reason=destination.state_reason,
        failures=destination.failures,
        error_message=destination.error_message,
        last_success_time=timestamp(destination.last_success_time),
        last_failure_time=timestamp(destination.last_failure_time),
        deactivate_time=timestamp(destination.deactivate_time),
        etag=destination.etag,
    )
