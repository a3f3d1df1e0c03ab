"""Take-backs on the wire: stored events of Queue and Publisher still decode, and outcomes keep their numbers."""

from datetime import UTC, datetime

import pytest

from postflow.bus.v1.bus_pb2 import Event
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotMoveReason
from postflow.target.v1.target_pb2 import Target as TargetMessage
from publisher_service.domain.plan import Slot
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target
from publisher_service.domain.take_back import CancelOutcome, SlotPost, TakenBack
from publisher_service.wire.events import slot_from
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.take_backs import cancel_response, canceled_posts_from, slot_posts_from
from servicekit.faults import InvalidField

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="telegram", destination="@news")
POST = SlotPost(organization_id="org", draft_id="draft", target=PAGE, slot_id="slot", slot_revision=4, slot_sequence=7)

# As the first release that has them encoded them.
CANCELED = bytes.fromhex(
    "0a036f72671204736c6f741804220564726166742a047061676532170a0470616765120874656c656772616d1a05406e6577733a0b0890a3"
    "95cd06108094ef3a40074802"
)
RETURNED = bytes.fromhex(
    "0a036f72671204736c6f741805220564726166742a047061676532170a0470616765120874656c656772616d1a05406e6577733a0b0890a3"
    "95cd06108094ef3a420b0890a395cd06108094ef3a4a0d4575726f70652f4265726c696e580960076a0b0890a395cd06108094ef3a"
)
TAKEN_BACK = bytes.fromhex(
    "0a036f7267100c1a5b0a036a6f62120564726166741a170a0470616765120874656c656772616d1a05406e657773200b2a0a54414b454e5f"
    "4241434b300338014204736c6f744804ba010b0890a395cd06108094ef3ac2010b0890a395cd06108094ef3a"
)


def a_job() -> PostJob:
    return PostJob(
        organization_id="org",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=JobState.CANCELED,
        state_reason=Reason.TAKEN_BACK,
        version=3,
        slot_id="slot",
        slot_revision=4,
        create_time=NOW,
        update_time=NOW,
    )


def test_the_stored_canceled_slot_still_decodes() -> None:
    assert canceled_posts_from(SlotCanceled.FromString(CANCELED)) == [POST]


def test_the_stored_slot_that_came_back_still_decodes() -> None:
    assert slot_from(Event(), SlotMoved.FromString(RETURNED)) == Slot(
        organization_id="org",
        slot_id="slot",
        sequence=7,
        revision=5,
        draft_id="draft",
        targets=(PAGE,),
        schedule_time=NOW,
        not_after=NOW,
        target_month="2026-03-01",
        traceparent="",
    )


@pytest.mark.parametrize("reason", [*SlotMoveReason.values(), 99])
def test_a_moved_slot_decodes_for_any_reason(reason: int) -> None:
    message = SlotMoved.FromString(RETURNED)
    message.reason = reason  # type: ignore[assignment]
    assert slot_from(Event(), message) == slot_from(Event(), SlotMoved.FromString(RETURNED))


def test_the_stored_event_of_a_taken_back_job_still_decodes() -> None:
    today = post_job_changed(a_job()).message
    assert isinstance(today, PostJobChanged)
    today.post_job.ClearField("action")
    assert PostJobChanged.FromString(TAKEN_BACK) == today


@pytest.mark.parametrize("outcome", CancelOutcome)
def test_every_outcome_has_its_number(outcome: CancelOutcome) -> None:
    (result,) = cancel_response([TakenBack(outcome=outcome, job=a_job())]).results
    assert pb.CancelOutcome.Name(result.outcome) == f"CANCEL_OUTCOME_{outcome}"
    assert result.post_job == post_job_changed(a_job()).message.post_job  # type: ignore[attr-defined]


def test_the_channel_of_a_post_gets_its_known_spelling() -> None:
    """The id of the job is made of it."""
    posts = [_post("Instagram "), _post("instagram_feed")]
    first, second = slot_posts_from(pb.CancelPostJobsRequest(organization_id="org", posts=posts))
    assert (first, first.target.channel) == (second, "instagram_feed")


def test_a_post_with_an_unknown_channel_is_refused() -> None:
    posts = [_post("telegram"), _post("billboard")]
    with pytest.raises(InvalidField) as refusal:
        slot_posts_from(pb.CancelPostJobsRequest(organization_id="org", posts=posts))
    assert (refusal.value.reason, refusal.value.metadata) == (
        "UNKNOWN_CHANNEL",
        {"field": "posts[1].target.channel"},
    )


def _post(channel: str) -> pb.SlotPost:
    target = TargetMessage(social_account_id="page", channel=channel)
    return pb.SlotPost(draft_id="draft", target=target, slot_id="slot", slot_revision=1)
