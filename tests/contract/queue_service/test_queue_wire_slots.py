"""Slots as QueueService shows them and as their events announce them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from postflow.queue.v1.queue_events_pb2 import (
    SlotCanceled,
    SlotCancelReason,
    SlotMoved,
    SlotMoveReason,
    SlotRefused,
    SlotScheduled,
)
from postflow.queue.v1.queue_service_pb2 import AddToQueueResponse, ListQueueSlotsResponse, ScheduleAtResponse
from queue_service.domain.arrangement import CanceledSlot
from queue_service.domain.job import JobState
from queue_service.domain.listing import Position
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.requested_time import RefusalReason, RefusedTime, Request
from queue_service.domain.slot import CancelReason, MoveReason, QueueSlot, SlotOrigin, SlotState, SlotTarget
from queue_service.wire.announcements import slot_canceled, slot_moved, slot_refused, slot_scheduled
from queue_service.wire.slots import (
    add_to_queue_response,
    cursor,
    list_queue_slots_response,
    position,
    queue_slot,
    schedule_at_response,
    states,
)

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
# As the first release encoded it: messages may wait in a stream for a month.
SLOT_SCHEDULED = bytes.fromhex(
    "0a0461636d65120273311802220264312a047061676532140a0470616765120866616365626f6f6b1a0234323a0b0890a395cd06108094ef"
    "3a4203555443"
)

SLOT_MOVED = bytes.fromhex(
    "0a0461636d65120273311803220264312a047061676532140a0470616765120866616365626f6f6b1a02343232090a04706167651201783a"
    "0b0890a395cd06108094ef3a420b08808795cd06108094ef3a4a0d4575726f70652f4265726c696e5210323032362d30332d30325431303a"
    "30305801"
)

moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(lambda each: each.replace(tzinfo=UTC))

SLOT = QueueSlot(
    organization_id="acme",
    id="s1",
    draft_id="d1",
    social_account_id="page",
    schedule_time=NOW,
    state=SlotState.NEEDS_ATTENTION,
    origin=SlotOrigin.QUEUE,
    revision=2,
    targets=(SlotTarget(channel="facebook", destination="42", job_id="j1", job_state=JobState.UNKNOWN, job_version=3),),
    not_after=NOW + timedelta(days=1),
    time_zone="Europe/Berlin",
    local_date=date(2026, 3, 2),
    local_time=time(10, 0, 0, 123456),
    content_revision=4,
    traceparent="00-0123-01",
    create_time=NOW,
    update_time=NOW,
    publish_time=NOW,
)


@given(moments, st.text())
def test_a_position_survives_a_page_token(instant: datetime, slot_id: str) -> None:
    before = Position(schedule_time=instant, slot_id=slot_id)
    assert position(cursor(before)) == before


def test_a_slot_is_shown_with_all_its_fields() -> None:
    shown = queue_slot(SLOT)
    assert (shown.local_date, shown.local_time) == ("2026-03-02", "10:00")
    assert shown.targets[0].post_job_state == "UNKNOWN"
    assert not shown.HasField("expected_time")
    assert shown.publish_time == shown.create_time == shown.schedule_time


@pytest.mark.parametrize("state", SlotState)
@pytest.mark.parametrize("origin", SlotOrigin)
def test_every_state_and_origin_has_its_number(state: SlotState, origin: SlotOrigin) -> None:
    shown = queue_slot(replace(SLOT, state=state, origin=origin))
    assert states([shown.state, shown.state]) == (state,)
    assert shown.origin != 0


@pytest.mark.parametrize(
    ("encode", "response"),
    [
        (add_to_queue_response, AddToQueueResponse),
        (schedule_at_response, ScheduleAtResponse),
        (lambda slots: list_queue_slots_response(slots, "next"), ListQueueSlotsResponse),
    ],
)
def test_every_field_of_a_response_is_filled(encode: Callable[[list[QueueSlot]], Message], response: type) -> None:
    """Fails for a field that is added to one response and not filled there."""
    answer = encode([SLOT, replace(SLOT, id="s2")])
    assert type(answer) is response
    assert {field.name for field, _ in answer.ListFields()} == set(response.DESCRIPTOR.fields_by_name)
    assert [shown.id for shown in answer.queue_slots] == ["s1", "s2"]  # type: ignore[attr-defined]


def test_the_announcement_of_a_slot_is_unchanged() -> None:
    announced = slot_scheduled(replace(SLOT, time_zone="UTC"))
    expected = SlotScheduled.FromString(SLOT_SCHEDULED)
    expected.not_after.FromDatetime(NOW + timedelta(days=1))
    expected.content_revision = SLOT.content_revision
    assert announced.message == expected
    assert (announced.subject, announced.aggregate_id) == ("events.queue.slot", "s1")
    assert announced.traceparent == "00-0123-01"


def test_the_announcement_of_a_slot_has_its_sequence() -> None:
    announced = slot_scheduled(replace(SLOT, sequence=7)).message
    assert isinstance(announced, SlotScheduled)
    assert announced.slot_sequence == 7


def test_a_slot_is_announced_with_its_wall_clock_time() -> None:
    announced = slot_scheduled(replace(SLOT, nominal=datetime(2026, 3, 29, 2, 30))).message
    assert isinstance(announced, SlotScheduled)
    assert announced.nominal_local_time == "2026-03-29T02:30"


def test_a_refusal_is_announced_under_the_draft() -> None:
    request = Request(draft=("acme", "d1"), draft_version=3, social_account_id="page", schedule_time=NOW)
    announced = slot_refused(
        RefusedTime(request=request, reason=RefusalReason.SLOT_TAKEN, message="taken"), NOW + timedelta(seconds=1)
    )
    assert (announced.subject, announced.organization_id, announced.aggregate_id) == (
        "events.queue.draft",
        "acme",
        "d1",
    )
    refused = announced.message
    assert isinstance(refused, SlotRefused)
    assert (refused.organization_id, refused.draft_id, refused.social_account_id) == ("acme", "d1", "page")
    assert (refused.draft_version, refused.reason, refused.message) == (3, "SLOT_TAKEN", "taken")
    assert refused.schedule_time.ToDatetime(UTC) == NOW
    assert refused.create_time.ToDatetime(UTC) == NOW + timedelta(seconds=1)


MOVED = MovedSlot(
    organization_id="acme",
    id="s1",
    revision=3,
    draft_id="d1",
    social_account_id="page",
    sequence=7,
    schedule_time=NOW,
    previous_schedule_time=NOW - timedelta(hours=1),
    not_after=NOW + timedelta(days=1),
    time_zone="Europe/Berlin",
    nominal=datetime(2026, 3, 2, 10, 0),
    traceparent="00-0123-01",
    reason=MoveReason.ZONE_DATA,
    targets=(("facebook", "42"), ("x", "")),
)


def test_a_moved_slot_is_announced_with_all_its_fields() -> None:
    announced = slot_moved(MOVED)
    assert (announced.subject, announced.aggregate_id) == ("events.queue.slot", "s1")
    assert (announced.organization_id, announced.traceparent) == ("acme", "00-0123-01")
    expected = SlotMoved.FromString(SLOT_MOVED)
    expected.slot_sequence = 7
    expected.not_after.FromDatetime(NOW + timedelta(days=1))
    assert announced.message == expected


@pytest.mark.parametrize("reason", list(MoveReason))
def test_every_reason_of_a_move_is_announced(reason: MoveReason) -> None:
    announced = slot_moved(replace(MOVED, reason=reason)).message
    assert isinstance(announced, SlotMoved)
    assert SlotMoveReason.Name(announced.reason) == f"SLOT_MOVE_REASON_{reason}"


@pytest.mark.parametrize("reason", list(CancelReason))
def test_a_canceled_slot_is_announced_with_all_its_fields(reason: CancelReason) -> None:
    announced = slot_canceled(
        CanceledSlot(
            organization_id="acme",
            id="s1",
            revision=4,
            draft_id="d1",
            social_account_id="page",
            sequence=7,
            schedule_time=NOW,
            traceparent="00-0123-01",
            reason=reason,
            targets=(("facebook", "42"),),
        )
    )
    assert (announced.subject, announced.aggregate_id) == ("events.queue.slot", "s1")
    assert (announced.organization_id, announced.traceparent) == ("acme", "00-0123-01")
    message = announced.message
    assert isinstance(message, SlotCanceled)
    assert {field.name for field, _ in message.ListFields()} == set(SlotCanceled.DESCRIPTOR.fields_by_name)
    assert (message.slot_id, message.revision, message.slot_sequence) == ("s1", 4, 7)
    assert SlotCancelReason.Name(message.reason) == f"SLOT_CANCEL_REASON_{reason}"
