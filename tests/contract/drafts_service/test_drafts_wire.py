"""Drafts' messages survive the wire both ways, and stored events of Drafts and Publisher still decode."""

from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafts_service import wire
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.draft import Draft, DraftView, approved
from drafts_service.domain.post_job import DraftState, FoldedState, JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.bus.v1.bus_pb2 import Event
from postflow.drafts.v1 import draft_pb2
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import PostJobState
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged, SocialAccountConnected
from servicekit.faults import InvalidRequest

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

texts = st.text(min_size=1, max_size=30)
channel_texts = st.builds(ChannelText, channel=texts, text=texts)
contents = st.builds(
    Content,
    text=texts,
    hashtags=st.lists(texts, max_size=4).map(tuple),
    channel_texts=st.lists(channel_texts, max_size=4).map(tuple),
)
targets = st.lists(
    st.builds(Target, social_account_id=texts, channel=texts, destination=st.text(max_size=10)), min_size=1, max_size=5
).map(tuple)

# Events as the first release encoded them: they may stay in the stream for a month.
SAVED = bytes.fromhex(
    "0a036f726712056472616674180220012a1c0a0548656c6c6f12036f6e651a0e0a0874656c656772616d1202486932403231313631623364"
    "3936323532356135666364323237376134373132386661393534393537343131346538363666363265346132333032653366366237666539"
    "380142170a0470616765120874656c656772616d1a05406e657773"
)
CHANGED = bytes.fromhex(
    "0a036f726710051a760a036a6f62120564726166741a170a0470616765120874656c656772616d1a05406e657773200830053801520b0890"
    "a395cd06108094ef3a680170017a0b0890a395cd06108094ef3a820101318a011868747470733a2f2f736f6369616c2e6578616d706c652f"
    "3192010b50524f56494445525f4944"
)
CONNECTED = bytes.fromhex(
    "0a036f726712280a0470616765120773616e64626f781a036578742204506167652a0866616365626f6f6b30013803"
)


@given(contents, targets)
def test_a_draft_survives_the_wire(content: Content, targets: tuple[Target, ...]) -> None:
    body = wire.encoded_body(content)
    assert wire.decoded_body(body) == content
    draft = Draft(organization_id="org", id="draft", body=body, targets=targets, create_time=NOW, update_time=NOW)
    shown = wire.draft_message(DraftView(draft=approved(draft, approver="ann", now=NOW), jobs=[]))
    assert wire.content(shown.content) == content
    assert wire.targets(shown.targets) == targets
    assert (shown.approved, shown.approver, shown.approve_time.ToDatetime(UTC)) == (True, "ann", NOW)


@given(contents, targets)
def test_an_announcement_carries_the_content_of_its_digest(content: Content, targets: tuple[Target, ...]) -> None:
    body = wire.encoded_body(content)
    draft = Draft(organization_id="org", id="draft", body=body, targets=targets, create_time=NOW, update_time=NOW)
    announcement = wire.draft_saved(draft)
    saved = DraftSaved.FromString(announcement.message.SerializeToString())
    assert sha256(saved.content).hexdigest() == saved.content_digest
    assert wire.content(draft_pb2.DraftContent.FromString(saved.content)) == content
    assert wire.targets(saved.targets) == targets
    assert (announcement.subject, announcement.aggregate_id) == ("events.drafts.draft", "draft")


@pytest.mark.parametrize("state", DraftState)
def test_every_state_of_a_draft_can_be_shown(state: DraftState) -> None:
    draft = Draft(
        organization_id="org",
        id="draft",
        body=wire.encoded_body(Content(text="text")),
        targets=(Target(social_account_id="a", channel="facebook"),),
        create_time=NOW,
        update_time=NOW,
        folded=FoldedState(state=state),
    )
    shown = draft_pb2.DraftState.Name(wire.draft_message(DraftView(draft=draft, jobs=[])).state)
    assert shown == f"DRAFT_STATE_{state}"


@pytest.mark.parametrize("number", [number for number in PostJobState.values() if number])
def test_every_state_of_a_post_job_is_understood(number: PostJobState) -> None:
    changed = PostJobChanged.FromString(CHANGED)
    changed.post_job.state = number
    event = wire.post_job_event(Event(organization_id="org"), changed)
    assert PostJobState.Name(number) == f"POST_JOB_STATE_{event.state}"


@pytest.mark.parametrize("damage", ["organization_id", "post_job.id", "post_job.draft_id", "post_job.state"])
def test_an_incomplete_event_is_refused(damage: str) -> None:
    changed = PostJobChanged.FromString(CHANGED)
    message = changed.post_job if damage.startswith("post_job.") else changed
    message.ClearField(damage.removeprefix("post_job."))
    with pytest.raises(InvalidRequest):
        wire.post_job_event(Event(organization_id="org"), changed)


def test_an_event_of_an_unknown_kind_counts_by_its_state() -> None:
    changed = PostJobChanged.FromString(CHANGED)
    changed.kind = 99  # type: ignore[assignment]
    event = wire.post_job_event(Event(organization_id="org"), changed)
    assert (event.kind, event.state) == ("99", JobState.PUBLISHED)


@pytest.mark.parametrize("damage", ["id", "state"])
def test_an_incomplete_account_is_refused(damage: str) -> None:
    connected = SocialAccountConnected.FromString(CONNECTED)
    connected.social_account.ClearField(damage)
    with pytest.raises(InvalidRequest):
        wire.account("org", connected.social_account)


def test_the_stored_events_still_decode() -> None:
    saved = DraftSaved.FromString(SAVED)
    assert (saved.organization_id, saved.draft_id, saved.version, saved.revision) == ("org", "draft", 2, 1)
    assert saved.approved
    assert wire.targets(saved.targets) == (Target(social_account_id="page", channel="telegram", destination="@news"),)
    assert wire.content(draft_pb2.DraftContent.FromString(saved.content)) == Content(
        text="Hello", hashtags=("one",), channel_texts=(ChannelText(channel="telegram", text="Hi"),)
    )
    connected = SocialAccountConnected.FromString(CONNECTED)
    assert wire.account(connected.organization_id, connected.social_account) == Account(
        organization_id="org", id="page", version=3, state=AccountState.CONNECTED
    )
    event = Event(organization_id="org", payload=CHANGED)
    event.occur_time.FromDatetime(NOW)
    heard = wire.post_job_event(event, PostJobChanged.FromString(CHANGED))
    assert heard == PostJobEvent(
        organization_id="org",
        id="job",
        draft_id="draft",
        version=5,
        target=Target(social_account_id="page", channel="telegram", destination="@news"),
        state=JobState.PUBLISHED,
        schedule_time=NOW,
        publish_time=NOW,
        external_url="https://social.example/1",
        kind="SUCCEEDED",
        payload=CHANGED,
        occur_time=NOW,
    )
