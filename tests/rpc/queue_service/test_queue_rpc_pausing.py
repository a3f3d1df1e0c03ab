"""Pausing, resuming and setting up queues over the wire: codes, reasons, replays, and other organizations."""

from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration

from postflow.queue.v1.queue_pb2 import LATE_ACTION_MISS, LATE_ACTION_PUBLISH, LATE_ACTION_RESLOT, LatePolicy
from postflow.queue.v1.queue_service_pb2 import (
    OVERDUE_POLICY_CANCEL,
    OVERDUE_POLICY_PUBLISH_PACED,
    GetQueueRequest,
    PauseQueueRequest,
    ResumeQueueRequest,
    ScheduleAtRequest,
    UpdateQueueRequest,
)
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED
from servicekit.clock import SystemClock
from servicekit.faults import Fault, Refused, Unavailable
from testkit.eventually import eventually
from tests.rpc.queue_service.conftest import stamp

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
PAGE: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page"}
OTHER: dict[str, Any] = {"organization_id": "other", "social_account_id": "page"}
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 60)]
REQUESTS: dict[str, type[Any]] = {
    "PauseQueue": PauseQueueRequest,
    "ResumeQueue": ResumeQueueRequest,
    "UpdateQueue": UpdateQueueRequest,
}
FIVE_MINUTES = Duration(seconds=300)


async def schedule(rig: "Rig", draft: str, ago: timedelta = timedelta(0)) -> None:
    rig.draft(draft, ("page", "facebook", ""))
    time = stamp(SystemClock().now() - ago)
    await rig.stub.ScheduleAt(ScheduleAtRequest(organization_id="acme", draft_id=draft, schedule_time=time))


async def test_a_pause_holds_the_account_and_says_what_it_could_not_stop(rig: "Rig") -> None:
    await schedule(rig, "d1")
    await rig.commands(1)
    rig.posts.started.add("d1")
    paused = await rig.stub.PauseQueue(PauseQueueRequest(**PAGE, reason="an incident", pauser="ann", etag="1"))
    shown = paused.queue
    assert (shown.paused, shown.pause_reason, shown.pauser, shown.etag) == (True, "an incident", "ann", "2")
    assert (shown.hold_pending, shown.dispatched_slots) == (False, 1)
    assert list(paused.in_flight_post_job_ids) == ["job-d1"]
    assert rig.posts.holds == {"page": (1, True)}
    assert (await rig.stub.GetQueue(GetQueueRequest(**PAGE))).queue == shown
    assert not (await rig.stub.GetQueue(GetQueueRequest(**OTHER))).queue.paused


async def test_what_had_not_started_comes_back_and_goes_out_after_the_resumption(rig: "Rig") -> None:
    await schedule(rig, "d1")
    await rig.commands(1)
    paused = (await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))).queue
    assert (paused.scheduled_slots, paused.dispatched_slots, paused.overdue_slots) == (1, 0, 1)
    answer = await rig.stub.ResumeQueue(ResumeQueueRequest(**PAGE, overdue=OVERDUE_POLICY_PUBLISH_PACED))
    assert (answer.queue.paused, [slot.draft_id for slot in answer.moved_slots]) == (False, ["d1"])
    assert rig.posts.holds == {"page": (2, False)}
    commands = await rig.commands(2)
    assert [command.slot_revision for command in commands] == [1, 3]


async def test_overdue_slots_are_canceled_or_get_the_next_slot_times(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS)
    for policy in (None, OVERDUE_POLICY_CANCEL):
        await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))
        await schedule(rig, f"d{policy}")
        answer = await rig.stub.ResumeQueue(ResumeQueueRequest(**PAGE, overdue=policy))
        if policy is None:
            assert [slot.schedule_time.ToDatetime(UTC) for slot in answer.moved_slots] == [DAYS[0]]
        else:
            assert [slot.state for slot in answer.canceled_slots] == [QUEUE_SLOT_STATE_CANCELED]
            assert [slot.state_reason for slot in answer.canceled_slots] == ["OVERDUE"]


async def test_settings_change_one_by_one(rig: "Rig") -> None:
    policy = LatePolicy(action=LATE_ACTION_MISS, grace=FIVE_MINUTES)
    shown = (await rig.stub.UpdateQueue(UpdateQueueRequest(**PAGE, late_policy=policy))).queue
    assert (shown.late_policy, shown.pace, shown.etag) == (policy, FIVE_MINUTES, "1")
    shown = (await rig.stub.UpdateQueue(UpdateQueueRequest(**PAGE, pace=Duration(seconds=10)))).queue
    assert (shown.late_policy, shown.pace.seconds, shown.etag) == (policy, 10, "2")
    # Absent fields of a policy have their defaults.
    shown = (await rig.stub.UpdateQueue(UpdateQueueRequest(**PAGE, late_policy=LatePolicy()))).queue
    assert (shown.late_policy.action, shown.late_policy.grace.seconds) == (LATE_ACTION_PUBLISH, 600)


@pytest.mark.parametrize("method", sorted(REQUESTS))
async def test_an_unknown_account_is_refused(rig: "Rig", refusal: Refusal, method: str) -> None:
    rig.publisher.missing.add("nobody")
    request = REQUESTS[method](organization_id="acme", social_account_id="nobody")
    refused = await refusal(getattr(rig.stub, method)(request))
    assert (refused.code, refused.reason) == ("NOT_FOUND", "ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize("method", sorted(REQUESTS))
async def test_an_outdated_etag_is_refused(rig: "Rig", refusal: Refusal, method: str) -> None:
    if method == "ResumeQueue":
        await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))
    request = REQUESTS[method](**PAGE, etag="9")
    refused = await refusal(getattr(rig.stub, method)(request))
    assert (refused.code, refused.reason) == ("ABORTED", "ETAG_MISMATCH")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (PauseQueueRequest(organization_id="acme"), "social_account_id"),
        (PauseQueueRequest(social_account_id="page"), "organization_id"),
        (PauseQueueRequest(**PAGE, reason="r" * 501), "reason"),
        (PauseQueueRequest(**PAGE, pauser="p" * 201), "pauser"),
        (ResumeQueueRequest(**PAGE, etag="e" * 65), "etag"),
        (ResumeQueueRequest(**PAGE, overdue=9), "overdue"),  # type: ignore[arg-type]
        (UpdateQueueRequest(**PAGE, pace=Duration(seconds=9)), "pace"),
        (UpdateQueueRequest(**PAGE, pace=Duration(seconds=86_401)), "pace"),
        (UpdateQueueRequest(**PAGE, late_policy=LatePolicy(grace=Duration(seconds=-1))), "late_policy.grace"),
        (UpdateQueueRequest(**PAGE, late_policy=LatePolicy(grace=Duration())), "late_policy.grace"),
        (UpdateQueueRequest(**PAGE, late_policy=LatePolicy(grace=Duration(seconds=700_000))), "late_policy.grace"),
        (UpdateQueueRequest(**PAGE, late_policy=LatePolicy(action=9)), "late_policy.action"),  # type: ignore[arg-type]
    ],
)
async def test_a_field_out_of_bounds_is_refused(rig: "Rig", refusal: Refusal, request_: Any, field: str) -> None:
    method = type(request_).__name__.removesuffix("Request")
    refused = await refusal(getattr(rig.stub, method)(request_))
    assert (refused.code, refused.metadata["field"]) == ("INVALID_ARGUMENT", field)


@pytest.mark.parametrize("method", ["PauseQueue", "ResumeQueue"])
async def test_without_publisher_the_hold_is_pending_and_completed_by_itself(
    rig: "Rig", refusal: Refusal, method: str
) -> None:
    if method == "ResumeQueue":
        await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))
    rig.posts.fault = Unavailable("DATABASE_DOWN", "no")
    refused = await refusal(getattr(rig.stub, method)(REQUESTS[method](**PAGE)))
    assert (refused.code, refused.reason) == ("UNAVAILABLE", "HOLD_PENDING")
    shown = (await rig.stub.GetQueue(GetQueueRequest(**PAGE))).queue
    assert (shown.paused, shown.hold_pending) == (method == "PauseQueue", True)
    rig.posts.fault = None

    async def stored() -> bool:
        return not (await rig.stub.GetQueue(GetQueueRequest(**PAGE))).queue.hold_pending

    assert await eventually(stored)
    assert rig.posts.holds["page"][1] == (method == "PauseQueue")


async def test_a_resumption_needs_slot_times_for_what_is_overdue(rig: "Rig", refusal: Refusal) -> None:
    await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))
    await schedule(rig, "d1")
    cases: list[tuple[str, Callable[[], Awaitable[None]]]] = [
        ("NO_SCHEDULE", _nothing),
        ("SCHEDULE_DISABLED", lambda: rig.put_schedule("page", *DAYS, enabled=False)),
        ("HORIZON_EXHAUSTED", lambda: rig.put_schedule("page", version=2)),
    ]
    for reason, prepare in cases:
        await prepare()
        refused = await refusal(rig.stub.ResumeQueue(ResumeQueueRequest(**PAGE)))
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", reason)
        assert refused.metadata["social_account_id"] == "page"
    rig.schedule.fault = Refused("UNKNOWN_TIME_ZONE", "no such zone")
    assert (await refusal(rig.stub.ResumeQueue(ResumeQueueRequest(**PAGE)))).reason == "UNKNOWN_TIME_ZONE"
    rig.schedule.fault = None
    # Queue lacks the data of this zone, and cannot tell the schedule.
    await rig.put_schedule("page", *DAYS, version=3, time_zone="Europe/Atlantis", announce=False)
    refused = await refusal(rig.stub.ResumeQueue(ResumeQueueRequest(**PAGE)))
    assert (refused.code, refused.reason) == ("UNAVAILABLE", "SCHEDULE_CHANGING")
    assert (await rig.stub.GetQueue(GetQueueRequest(**PAGE))).queue.paused


async def _nothing() -> None:
    pass


@pytest.mark.parametrize("method", sorted(REQUESTS))
async def test_a_repeated_request_gets_the_first_answer(rig: "Rig", refusal: Refusal, method: str) -> None:
    fields: dict[str, Any] = {"late_policy": LatePolicy(action=LATE_ACTION_RESLOT)} if method == "UpdateQueue" else {}
    if method == "ResumeQueue":
        await rig.stub.PauseQueue(PauseQueueRequest(**PAGE))
    request = REQUESTS[method](**PAGE, **fields, request_id="r1")
    call = getattr(rig.stub, method)
    answer = await call(request)
    other = PauseQueueRequest(**PAGE) if method == "ResumeQueue" else ResumeQueueRequest(**PAGE)
    await getattr(rig.stub, type(other).__name__.removesuffix("Request"))(other)
    assert await call(request) == answer
    request.etag = "4"
    assert (await refusal(call(request))).reason == "REQUEST_ID_REUSED"


async def test_another_organization_has_a_queue_of_its_own(rig: "Rig") -> None:
    await rig.stub.PauseQueue(PauseQueueRequest(**OTHER))
    assert not (await rig.stub.GetQueue(GetQueueRequest(**PAGE))).queue.paused
    await schedule(rig, "d1")
    assert [command.draft_id for command in await rig.commands(1)] == ["d1"]
