"""The events that watchers hear, and the tokens with which they go on."""

import base64
from datetime import timedelta

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from postflow.bus.v1.bus_pb2 import Envelope, Event
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import AcceptedCommand, CommandsAccepted, PostJobChanged
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from postflow.queue.v1.queue_service_pb2 import WatchQueueRequest
from postflow.target.v1.target_pb2 import Target
from queue_service.domain.listing import Position
from queue_service.domain.watching import Change, Mark
from queue_service.wire import watching
from servicekit.bus.feed import Hint
from servicekit.faults import InvalidField, OutOfRange
from servicekit.rpc import read_resume_token, resume_token
from testkit.clocks import START

PAGE = ("acme", "page")
FEED = Target(social_account_id="page", channel="facebook", destination="42")
REQUEST = WatchQueueRequest(organization_id="acme", social_account_id="page")
MARK = Mark(create_time=START, sequence=7, settings="a", limits="b", low=None)


def envelope(*messages: Message, organization_id: str = "acme") -> bytes:
    events = [
        Event(
            id=str(number),
            type=each.DESCRIPTOR.full_name,
            organization_id=organization_id,
            payload=each.SerializeToString(),
        )
        for number, each in enumerate(messages)
    ]
    return Envelope(events=events).SerializeToString()


def hints(payload: bytes) -> list[Hint]:
    return list(watching.hints(payload, {"acme"}))


def test_events_of_slots_name_the_slot() -> None:
    given_events = [
        kind(organization_id="acme", slot_id=f"s{number}", social_account_id="page", revision=9)
        for number, kind in enumerate((SlotScheduled, SlotMoved, SlotCanceled))
    ]
    assert hints(envelope(*given_events)) == [Hint(PAGE, Change(f"s{number}"), 0) for number in range(3)]


def test_events_of_jobs_name_the_target_and_its_version() -> None:
    changed = PostJobChanged(organization_id="acme")
    job = changed.post_job
    job.slot_id, job.draft_id, job.version = "s1", "d1", 3
    job.target.CopyFrom(FEED)
    accepted = AcceptedCommand(slot_id="s2", draft_id="d2", target=FEED, version=2)
    assert hints(envelope(changed, CommandsAccepted(organization_id="acme", commands=[accepted]))) == [
        Hint(PAGE, Change("s1", "d1", "facebook", "42"), 3),
        Hint(PAGE, Change("s2", "d2", "facebook", "42"), 2),
    ]


def test_events_of_other_organizations_and_kinds_concern_nobody() -> None:
    slot = SlotScheduled(organization_id="umbrella", slot_id="s1", social_account_id="page")
    assert hints(envelope(slot, organization_id="umbrella")) == []
    assert hints(envelope(DraftSaved(organization_id="acme", draft_id="d1"))) == []


def test_what_cannot_be_decoded_hides_nothing_else() -> None:
    broken = Event(type=SlotMoved.DESCRIPTOR.full_name, organization_id="acme", payload=b"\xff\xff")
    whole = envelope(SlotMoved(organization_id="acme", slot_id="s1", social_account_id="page"))
    assert hints(Envelope(events=[broken]).SerializeToString() + whole) == [Hint(PAGE, Change("s1"), 0)]
    assert hints(b"\xff\xff no envelope") == []


@given(
    st.builds(
        Mark,
        create_time=st.datetimes().map(lambda each: each.replace(tzinfo=START.tzinfo)),
        sequence=st.integers(0, 2**62),
        settings=st.text(max_size=12),
        limits=st.text(max_size=12),
        low=st.none() | st.just(START + timedelta(microseconds=1)),
        after=st.none() | st.just(Position()) | st.just(Position(schedule_time=START, slot_id="s1")),
    )
)
def test_a_token_says_how_far_a_watcher_has_come(mark: Mark) -> None:
    token = resume_token(REQUEST, watching.cursor(mark))
    asked = WatchQueueRequest(organization_id="acme", social_account_id="page", resume_token=token)
    assert watching.mark(read_resume_token(asked)) == mark


def test_a_token_fits_into_its_field() -> None:
    after = Position(schedule_time=START, slot_id="s" * 64)
    mark = Mark(create_time=START, sequence=2**62, settings="a" * 12, limits="b" * 12, low=START, after=after)
    assert len(resume_token(REQUEST, watching.cursor(mark))) <= 1024


@pytest.mark.parametrize("token", ["nonsense", "ä", "=", base64.b64encode(b"[1]" * 5).decode()])
def test_a_malformed_token_is_refused(token: str) -> None:
    asked = WatchQueueRequest(organization_id="acme", social_account_id="page", resume_token=token)
    with pytest.raises(InvalidField) as refused:
        read_resume_token(asked)
    assert refused.value.metadata["field"] == "resume_token"


def test_a_token_is_valid_for_its_own_account_only() -> None:
    token = resume_token(REQUEST, watching.cursor(MARK))
    asked = WatchQueueRequest(organization_id="acme", social_account_id="other", resume_token=token)
    with pytest.raises(InvalidField):
        read_resume_token(asked)


def test_a_token_of_another_release_has_expired() -> None:
    form, *rest = watching.cursor(MARK)
    with pytest.raises(OutOfRange) as refused:
        watching.mark((int(form) + 1, *rest))
    assert refused.value.reason == "RESUME_TOKEN_EXPIRED"


def test_watching_begins_without_a_token() -> None:
    assert read_resume_token(REQUEST) is None
    assert watching.mark(None) is None
