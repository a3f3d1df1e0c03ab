"""Holds: the calls of PublisherService that put, release and list them."""

from collections.abc import Sequence
from typing import cast

from postflow.publisher.v1 import hold_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.hold import Hold, HoldFilter, Holding, Scope, WantedHold
from publisher_service.wire.given_texts import require_words
from servicekit.faults import InvalidField
from servicekit.timestamps import moment, timestamp

# The generated stubs say that Value returns an int, and that a field takes the enum.
_NUMBERS: dict[str, hold_pb2.HoldScope] = {
    scope: cast(hold_pb2.HoldScope, hold_pb2.HoldScope.Value(f"HOLD_SCOPE_{scope}")) for scope in Scope
}
_SCOPES: dict[int, Scope] = {_NUMBERS[scope]: scope for scope in Scope}


def wanted_hold_from(request: pb.PutHoldRequest) -> WantedHold:
    scope = _SCOPES.get(request.scope)
    if scope is None:
        raise InvalidField("scope", "is not known here")
    if scope is Scope.ORGANIZATION and request.scope_id:
        raise InvalidField("scope_id", "must be empty: the hold covers the whole organization")
    if scope is not Scope.ORGANIZATION and not request.scope_id:
        raise InvalidField("scope_id", "is required")
    return WantedHold(
        organization_id=request.organization_id,
        id=request.hold_id,
        scope=scope,
        scope_id=request.scope_id,
        revision=request.revision,
        reason=require_words("reason", request.reason),
        holder=request.holder,
        end_time=moment(request.end_time) if request.HasField("end_time") else None,
    )


def hold_filter_from(request: pb.ListHoldsRequest) -> HoldFilter:
    if not all(number in _SCOPES for number in request.scopes):
        raise InvalidField("scopes", "are not all known here")
    return HoldFilter(
        organization_id=request.organization_id,
        social_account_id=request.social_account_id,
        scopes=tuple(_SCOPES[number] for number in request.scopes),
        scope_id=request.scope_id,
    )


def put_hold_response(holding: Holding) -> pb.PutHoldResponse:
    return pb.PutHoldResponse(
        hold=_hold(holding.hold),
        in_flight_post_job_ids=holding.in_flight,
        in_flight_count=holding.in_flight_count,
    )


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
        end_time=timestamp(hold.end_time),
    )
