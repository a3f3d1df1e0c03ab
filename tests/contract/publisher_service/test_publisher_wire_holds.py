"""Holds on the wire: what a caller asks for, and what is shown of holds of this release and of a newer one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from postflow.publisher.v1 import hold_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.hold import Hold, Holding, Scope, WantedHold
from publisher_service.wire.holds import (
    hold_filter_from,
    list_holds_response,
    put_hold_response,
    release_hold_response,
    wanted_hold_from,
)
from servicekit.faults import InvalidField
from servicekit.timestamps import timestamp

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
HOLD = Hold(
    organization_id="org",
    id="hold",
    scope=Scope.ACCOUNT,
    scope_id="page",
    revision=3,
    reason="wrong price",
    holder="ann",
    in_force=True,
    create_time=NOW,
    update_time=LATER,
)
MESSAGE = hold_pb2.Hold(
    id="hold",
    scope=hold_pb2.HOLD_SCOPE_ACCOUNT,
    scope_id="page",
    revision=3,
    reason="wrong price",
    holder="ann",
    in_force=True,
    create_time=timestamp(NOW),
    update_time=timestamp(LATER),
)
# As the first release that has them encoded them: the ledger keeps answers for a day.
PUT = bytes.fromhex(
    "0a390a04686f6c6410011a047061676520032a0b77726f6e672070726963653203616e6e3801420b0890a395cd06108094ef3a4a0608a0bf"
    "95cd0612036a6f62"
)


def test_a_stored_answer_still_decodes() -> None:
    answer = put_hold_response(Holding(hold=HOLD, in_flight=("job",), in_flight_count=1))
    stored = pb.PutHoldResponse.FromString(PUT)
    assert (stored.hold, stored.in_flight_post_job_ids) == (answer.hold, answer.in_flight_post_job_ids)
    assert (answer.hold, list(answer.in_flight_post_job_ids)) == (MESSAGE, ["job"])


def test_a_request_says_what_is_wanted() -> None:
    request = pb.PutHoldRequest(
        organization_id="org",
        hold_id="hold",
        scope=hold_pb2.HOLD_SCOPE_ACCOUNT,
        scope_id="page",
        revision=3,
        reason="wrong price",
        holder="ann",
    )
    assert wanted_hold_from(request) == WantedHold(
        organization_id="org",
        id="hold",
        scope=Scope.ACCOUNT,
        scope_id="page",
        revision=3,
        reason="wrong price",
        holder="ann",
    )


def test_a_scope_of_a_newer_release_is_refused_and_not_taken_for_another() -> None:
    with pytest.raises(InvalidField) as refusal:
        wanted_hold_from(pb.PutHoldRequest(hold_id="hold", scope=99))  # type: ignore[arg-type]
    assert [violation.field for violation in refusal.value.violations] == ["scope"]
    with pytest.raises(InvalidField) as refusal:
        hold_filter_from(pb.ListHoldsRequest(scopes=[hold_pb2.HOLD_SCOPE_BRAND, 99]))  # type: ignore[list-item]
    assert [violation.field for violation in refusal.value.violations] == ["scopes"]


@pytest.mark.parametrize(("scope", "scope_id"), [(Scope.ORGANIZATION, "acme"), (Scope.BRAND, ""), (Scope.PROVIDER, "")])
def test_only_the_organization_is_held_without_an_id(scope: Scope, scope_id: str) -> None:
    number = hold_pb2.HoldScope.Value(f"HOLD_SCOPE_{scope}")
    with pytest.raises(InvalidField) as refusal:
        wanted_hold_from(pb.PutHoldRequest(hold_id="hold", scope=number, scope_id=scope_id))  # type: ignore[arg-type]
    assert [violation.field for violation in refusal.value.violations] == ["scope_id"]


def test_the_end_of_a_hold_is_shown() -> None:
    request = pb.PutHoldRequest(
        hold_id="hold", scope=hold_pb2.HOLD_SCOPE_ORGANIZATION, reason="r", end_time=timestamp(LATER)
    )
    assert wanted_hold_from(request).end_time == LATER
    assert release_hold_response(replace(HOLD, end_time=LATER)).hold.end_time == timestamp(LATER)
    assert not release_hold_response(HOLD).hold.HasField("end_time")


@pytest.mark.parametrize("scope", Scope)
def test_every_scope_has_its_number(scope: Scope) -> None:
    shown = release_hold_response(replace(HOLD, scope=scope, in_force=False)).hold
    assert hold_pb2.HoldScope.Name(shown.scope) == f"HOLD_SCOPE_{scope}"


@pytest.mark.parametrize("scope", ["", "CONTINENT"], ids=["never put", "newer release"])
def test_a_scope_without_a_number_is_not_set(scope: str) -> None:
    answer = list_holds_response([replace(HOLD, scope=scope)], "next")
    assert (answer.holds[0].scope, answer.next_page_token) == (hold_pb2.HOLD_SCOPE_UNSPECIFIED, "next")
