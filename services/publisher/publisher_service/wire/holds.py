"""Holds: the calls of PublisherService that put, release and list them."""

from collections.abc import Sequence

from postflow.publisher.v1 import hold_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.hold import Hold, Holding, Scope, WantedHold
from servicekit.faults import InvalidField
from servicekit.timestamps import timestamp

_SCOPES: dict[int, Scope] = {hold_pb2.HOLD_SCOPE_ACCOUNT: Scope.ACCOUNT}
_NUMBERS = {
    Scope.ACCOUNT.value: hold_pb2.HOLD_SCOPE_ACCOUNT,
}


def wanted_hold_from(request: pb.PutHoldRequest) -> WantedHold:
    scope = _SCOPES.get(request.scope)
    if scope is None:
        raise InvalidField("scope", "is not known here")
    return WantedHold(
        organization_id=request.organization_id,
        id=request.hold_id,
        scope=scope,
        scope_id=request.scope_id,
        revision=request.revision,
        reason=request.reason,
        holder=request.holder,
    )


def put_hold_response(holding: Holding) -> pb.PutHoldResponse:
    return pb.PutHoldResponse(hold=_hold(holding.hold), in_flight_post_job_ids=holding.in_flight)


def release_hold_response(hold: Hold) -> pb.ReleaseHoldResponse:
    return pb.ReleaseHoldResponse(hold=_hold(hold))


def list_holds_response(holds: Sequence[Hold], next_page_token: str) -> pb.ListHoldsResponse:
    return pb.ListHoldsResponse(holds=map(_hold, holds), next_page_token=next_page_token)


def _hold(hold: Hold) -> hold_pb2.Hold:
    return hold_pb2.Hold(
        id=hold.id,
        scope=_NUMBERS.get(hold.scope, hold_pb2.HOLD_SCOPE_UNSPECIFIED),
        scope_id=hold.scope_id,
        revision=hold.revision,
        reason=hold.reason,
        holder=hold.holder,
        in_force=hold.in_force,
        create_time=timestamp(hold.create_time),
        update_time=timestamp(hold.update_time),
    )
