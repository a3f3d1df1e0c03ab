"""Messages survive the round trip, and stored ones of Drafts, Queue and Publisher still decode."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from postflow.bus.v1.bus_pb2 import Event
from postflow.drafts.v1.draft_pb2 import DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1 import publisher_service_pb2
from postflow.publisher.v1.post_job_pb2 import PostJob as PostJobMessage
from postflow.publisher.v1.post_job_pb2 import PostJobState
from postflow.publisher.v1.publisher_events_pb2 import (
    PostJobChanged,
    PostJobEventKind,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from postflow.queue.v1.queue_events_pb2 import SlotMoved, SlotScheduled
from publisher_service.domain.account import AccountState, SocialAccount
from publisher_service.domain.attempt import Attempt
from publisher_service.domain.claim import Command
from publisher_service.domain.content import Content
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.post_job import WITH_NEXT_ACTION, EventKind, JobState, PostJob, Reason, Target, kind_of
from publisher_service.domain.settlement import AttemptState
from publisher_service.domain.withdrawal import Withdrawal
from publisher_service.wire.accounts import account_connected, account_disconnected, social_account
from publisher_service.wire.commands import command_from
from publisher_service.wire.contents import content_from
from publisher_service.wire.events import saved_draft_from, slot_from
from publisher_service.wire.posts import (
    get_post_job_response,
    post_job,
    post_job_changed,
    states_from,
    withdraw_response,
)
from publisher_service.wire.targets import target_from
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.faults import InvalidRequest
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="telegram", destination="@news")
CONTENT = DraftContent(text="Hello", hashtags=["one"]).SerializeToString(deterministic=True)

# Messages as the first release encoded them: events may wait in a stream for a month, commands for a day.
SAVED = bytes.fromhex(
    "0a036f726712056472616674180220012a1c0a0548656c6c6f12036f6e651a0e0a0874656c656772616d1202486932403231313631623364"
    "3936323532356135666364323237376134373132386661393534393537343131346538363666363265346132333032653366366237666539"
    "380142170a0470616765120874656c656772616d1a05406e657773"
)
SLOT = bytes.fromhex(
    "0a036f72671204736c6f741803220564726166742a047061676532170a0470616765120874656c656772616d1a05406e6577733a0b0890a3"
    "95cd06108094ef3a420d4575726f70652f4265726c696e"
)
MOVED = bytes.fromhex(
    "0a036f72671204736c6f741803220564726166742a047061676532170a0470616765120874656c656772616d1a05406e6577733a0b0890a3"
    "95cd06108094ef3a420b08808795cd06108094ef3a4a0d4575726f70652f4265726c696e5210323032362d30332d30325431303a30305801"
)
COMMAND = bytes.fromhex(
    "0a036f72671204736c6f74180320022a05647261667432170a0470616765120874656c656772616d1a05406e6577733a0b0890a395cd0610"
    "8094ef3a420b08a0bf95cd06108094ef3a480450055a0830302d7472616365"
)
CHANGED = bytes.fromhex(
    "0a036f726710051ac5010a036a6f62120564726166741a170a0470616765120874656c656772616d1a05406e657773200830053801420473"
    "6c6f744803520b0890a395cd06108094ef3a5a0b08a0bf95cd06108094ef3a680170047a0b0890a395cd06108094ef3a82010473702d318a"
    "011868747470733a2f2f736f6369616c2e6578616d706c652f3192010b50524f56494445525f4944aa010b0890a395cd06108094ef3ab201"
    "0a323032362d30332d3031ba010b0890a395cd06108094ef3ac2010b0890a395cd06108094ef3a"
)

moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC))
texts = st.text(max_size=20)


@st.composite
def jobs(draw: st.DrawFn, *states: JobState) -> PostJob:
    state = draw(st.sampled_from(states or tuple(JobState)))
    maybe = st.none() | moments
    return PostJob(
        organization_id="org",
        id=draw(texts),
        draft_id=draw(texts),
        target=draw(st.builds(Target, social_account_id=texts, channel=texts, destination=texts)),
        state=state,
        state_reason=draw(st.sampled_from(Reason)),
        version=draw(st.integers(1, 2**40)),
        run=draw(st.integers(1, 99)),
        slot_id=draw(texts),
        slot_revision=draw(st.integers(0, 2**40)),
        schedule_time=draw(maybe),
        not_after=draw(maybe),
        next_action_time=draw(moments) if state in WITH_NEXT_ACTION else None,
        attempts=draw(st.integers(0, 99)),
        content_revision=draw(st.integers(0, 2**40)),
        publish_time=draw(maybe),
        external_id=draw(texts),
        external_url=draw(texts),
        evidence_kind=draw(texts),
        error_reason=draw(texts),
        error_message=draw(texts),
        last_attempt_time=draw(maybe),
        target_month=draw(texts),
        create_time=draw(moments),
        update_time=draw(moments),
    )


@given(jobs())
def test_a_post_job_survives_the_wire_in_every_state(job: PostJob) -> None:
    announcement = post_job_changed(job)
    changed = PostJobChanged.FromString(announcement.message.SerializeToString())
    assert changed.organization_id == "org"
    assert PostJobEventKind.Name(changed.kind) == f"POST_JOB_EVENT_KIND_{kind_of(job.state)}"
    assert PostJobState.Name(changed.post_job.state) == f"POST_JOB_STATE_{job.state}"
    assert (announcement.subject, announcement.aggregate_id) == ("events.publisher.post_job", job.id)
    assert changed.post_job == post_job(job)
    for field in fields(PostJob):
        if field.name not in NOT_SHOWN:
            assert shown(changed.post_job, field.name) == getattr(job, field.name), field.name


# Fields that no other service needs.
NOT_SHOWN = {
    "organization_id",
    "state",
    "max_attempts",
    "fence",
    "slot_sequence",
    "wanted_revision",
    "withdrawn_below",
    "traceparent",
    "parked_on",
    "expected_time",
    # Both are shown together as `publish_now`.
    "called_run",
    "over_cap",
}


def shown(message: PostJobMessage, name: str) -> object:
    value = getattr(message, name)
    match value:
        case Timestamp():
            return moment(value) if message.HasField(name) else None
        case str() | int():
            return value
        case _:
            return target_from(value)


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_of_event_has_its_number(kind: EventKind) -> None:
    message = post_job_changed(a_job(), kind).message
    assert isinstance(message, PostJobChanged)
    assert PostJobEventKind.Name(message.kind) == f"POST_JOB_EVENT_KIND_{kind}"


@pytest.mark.parametrize("state", JobState)
def test_every_state_can_be_a_filter(state: JobState) -> None:
    assert states_from([0, PostJobState.Value(f"POST_JOB_STATE_{state}")]) == (state,)


def test_the_stored_draft_still_decodes() -> None:
    saved = saved_draft_from(DraftSaved.FromString(SAVED))
    assert saved == SavedDraft(
        organization_id="org",
        draft_id="draft",
        version=2,
        revision=1,
        content=saved.content,
        content_digest="21161b3d962525a5fcd2277a47128fa9549574114e866f62e4a2302e3f6b7fe9",
        approved=True,
        targets=(PAGE,),
    )
    assert content_from(saved.content) == Content(text="Hello", hashtags=("one",), channel_texts={"telegram": "Hi"})


def test_the_stored_slot_still_decodes() -> None:
    assert slot_from(Event(traceparent="00-trace"), SlotScheduled.FromString(SLOT)) == Slot(
        organization_id="org",
        slot_id="slot",
        sequence=0,
        revision=3,
        draft_id="draft",
        targets=(PAGE,),
        schedule_time=NOW,
        not_after=None,
        target_month="2026-03-01",
        traceparent="00-trace",
    )


def test_a_stored_moved_slot_decodes_like_a_scheduled_one() -> None:
    moved, scheduled = SlotMoved.FromString(MOVED), SlotScheduled.FromString(SLOT)
    assert slot_from(Event(), moved) == slot_from(Event(), scheduled)


def test_the_stored_command_still_decodes() -> None:
    assert command_from(PublishCommand.FromString(COMMAND)) == Command(
        organization_id="org",
        draft_id="draft",
        target=PAGE,
        slot_id="slot",
        slot_revision=3,
        emission=2,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        content_revision=4,
        max_attempts=5,
        traceparent="00-trace",
    )


def test_the_stored_post_job_event_still_decodes() -> None:
    today = post_job_changed(a_job()).message
    assert isinstance(today, PostJobChanged)
    today.post_job.ClearField("action")
    assert PostJobChanged.FromString(CHANGED) == today


@pytest.mark.parametrize(
    "damage",
    [
        "organization_id",
        "slot_id",
        "draft_id",
        "target",
        "target.social_account_id",
        "target.channel",
        "schedule_time",
        "not_after",
    ],
)
def test_an_incomplete_command_is_refused(damage: str) -> None:
    command = PublishCommand.FromString(COMMAND)
    message = command.target if damage.startswith("target.") else command
    message.ClearField(damage.removeprefix("target."))
    with pytest.raises(UnreadableMessage):
        command_from(command)


@pytest.mark.parametrize("name", ["organization_id", "slot_id", "draft_id", "traceparent"])
def test_a_command_with_a_nul_character_is_refused(name: str) -> None:
    command = PublishCommand.FromString(COMMAND)
    setattr(command, name, "a\0b")
    with pytest.raises(UnreadableMessage):
        command_from(command)


@pytest.mark.parametrize("seconds", [10**12, -(10**12), 2**63 - 1])
def test_an_instant_out_of_range_is_refused(seconds: int) -> None:
    command = PublishCommand.FromString(COMMAND)
    command.schedule_time.seconds = seconds
    with pytest.raises(InvalidRequest):
        command_from(command)


def test_a_command_without_a_limit_has_one_attempt() -> None:
    command = PublishCommand.FromString(COMMAND)
    command.max_attempts = -1
    assert command_from(command).max_attempts == 1


@pytest.mark.parametrize("content", [b"other", b"\xff\xff"])
def test_content_that_does_not_match_its_digest_is_refused(content: bytes) -> None:
    saved = DraftSaved.FromString(SAVED)
    saved.content = content
    with pytest.raises(UnreadableMessage):
        saved_draft_from(saved)
    saved.content_digest = sha256(content).hexdigest()
    with pytest.raises(UnreadableMessage, match="cannot be read"):
        saved_draft_from(saved)


@pytest.mark.parametrize(
    ("time", "zone", "month"),
    [
        (datetime(2026, 3, 31, 23, 30, tzinfo=UTC), "Europe/Berlin", "2026-04-01"),
        (datetime(2026, 3, 31, 23, 30, tzinfo=UTC), "America/New_York", "2026-03-01"),
        (datetime(2026, 3, 31, 23, 30, tzinfo=UTC), "", "2026-03-01"),
        (datetime(2026, 3, 31, 23, 30, tzinfo=UTC), "Mars/Olympus", "2026-03-01"),
    ],
)
def test_the_month_of_a_slot_is_the_local_one(time: datetime, zone: str, month: str) -> None:
    message = SlotScheduled.FromString(SLOT)
    message.schedule_time.FromDatetime(time)
    message.time_zone = zone
    assert slot_from(Event(), message).target_month == month


def test_an_account_is_announced_without_its_credentials() -> None:
    account = SocialAccount(
        organization_id="org",
        id="page",
        provider="sandbox",
        external_account_id="ext",
        display_name="Page",
        channels=("facebook", "telegram"),
        state=AccountState.CONNECTED,
        version=2,
        create_time=NOW,
        update_time=NOW,
    )
    connected = account_connected(account)
    gone = account_disconnected(replace(account, state=AccountState.DISCONNECTED), "the token was refused")
    assert isinstance(connected.message, SocialAccountConnected)
    assert isinstance(gone.message, SocialAccountDisconnected)
    assert connected.subject == gone.subject == "events.publisher.social_account"
    assert connected.message.social_account == social_account(account)
    assert gone.message.error_message == "the token was refused"
    assert not {"credentials", "access_token"} & set(connected.message.social_account.DESCRIPTOR.fields_by_name)


def test_a_job_is_shown_with_its_attempts() -> None:
    attempt = Attempt(
        run=1,
        number=2,
        state=AttemptState.NOT_SENT,
        idempotency_key="job-1",
        content_revision=4,
        start_time=NOW,
        end_time=None,
        external_id="",
        error_reason="RATE_LIMITED",
        error_message="later",
    )
    response = get_post_job_response(a_job(), [attempt, replace(attempt, end_time=NOW)], [])
    first, second = response.attempts
    assert not first.HasField("end_time")
    assert moment(second.end_time) == moment(first.start_time) == NOW
    assert (first.run, first.number, first.state, first.error_reason) == (1, 2, "NOT_SENT", "RATE_LIMITED")


def test_a_withdrawal_that_is_too_late_names_the_jobs_in_flight() -> None:
    assert withdraw_response(Withdrawal()).outcome == publisher_service_pb2.WITHDRAW_OUTCOME_WITHDRAWN
    late = withdraw_response(Withdrawal(in_flight=("job",)))
    assert late.outcome == publisher_service_pb2.WITHDRAW_OUTCOME_TOO_LATE
    assert list(late.in_flight_post_job_ids) == ["job"]


def test_a_withdrawal_has_the_evidence_of_published_posts() -> None:
    job = a_job()
    answer = withdraw_response(Withdrawal(published=(job,)))
    assert answer.outcome == publisher_service_pb2.WITHDRAW_OUTCOME_PUBLISHED
    (out,) = answer.published
    shown = post_job(job)
    names = ("target", "content_revision", "publish_time", "schedule_time", "external_id", "external_url", "version")
    assert [getattr(out, name) for name in names] == [getattr(shown, name) for name in names]
    assert out.post_job_id == job.id


def a_job() -> PostJob:
    return PostJob(
        organization_id="org",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=JobState.PUBLISHED,
        version=5,
        slot_id="slot",
        slot_revision=3,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        attempts=1,
        fence=1,
        content_revision=4,
        publish_time=NOW,
        external_id="sp-1",
        external_url="https://social.example/1",
        evidence_kind="PROVIDER_ID",
        last_attempt_time=NOW,
        target_month="2026-03-01",
        create_time=NOW,
        update_time=NOW,
    )
