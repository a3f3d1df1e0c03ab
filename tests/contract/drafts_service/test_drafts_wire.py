"""Drafts' messages survive the wire both ways, and stored events of Drafts and Publisher still decode."""

from datetime import UTC, datetime
from hashlib import sha256

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from hypothesis import given
from hypothesis import strategies as st

from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import ChannelMedia, ChannelText, Content, FollowUp, Media
from drafts_service.domain.draft import Draft, DraftView, Placement, approved
from drafts_service.domain.post_job import DraftState, FoldedState, JobState, PostJobEvent
from drafts_service.domain.slot_refusal import RefusedSlot, SlotRefusal
from drafts_service.domain.target import Target
from drafts_service.wire import contents, drafts, events, targets
from postflow.bus.v1.bus_pb2 import Event
from postflow.drafts.v1 import draft_pb2
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import PostJobState
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged, SocialAccountConnected
from postflow.queue.v1.queue_events_pb2 import SlotRefused
from servicekit.faults import InvalidRequest

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

texts = st.text(min_size=1, max_size=30)
channel_texts = st.builds(ChannelText, channel=texts, text=texts)
media = st.lists(st.builds(Media, url=texts, alt_text=texts), max_size=4).map(tuple)
any_content = st.builds(
    Content,
    text=texts,
    hashtags=st.lists(texts, max_size=4).map(tuple),
    channel_texts=st.lists(channel_texts, max_size=4).map(tuple),
    title=texts,
    link=texts,
    media=media,
    channel_media=st.lists(st.builds(ChannelMedia, channel=texts, media=media), max_size=3).map(tuple),
    follow_ups=st.lists(st.builds(FollowUp, channel=texts, text=texts), max_size=4).map(tuple),
)
any_targets = st.lists(
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


@given(any_content, any_targets)
def test_a_draft_survives_the_wire(content: Content, addressed: tuple[Target, ...]) -> None:
    body = contents.encoded_body(content)
    assert contents.decoded_body(body) == content
    draft = Draft(organization_id="org", id="draft", body=body, targets=addressed, create_time=NOW, update_time=NOW)
    shown = drafts.draft_message(DraftView(draft=approved(draft, approver="ann", now=NOW), jobs=[]))
    assert contents.content(shown.content) == content
    assert targets.targets(shown.targets) == addressed
    assert (shown.approved, shown.approver, shown.approve_time.ToDatetime(UTC)) == (True, "ann", NOW)


@given(any_content, any_targets)
def test_an_announcement_carries_the_content_of_its_digest(content: Content, addressed: tuple[Target, ...]) -> None:
    body = contents.encoded_body(content)
    draft = Draft(organization_id="org", id="draft", body=body, targets=addressed, create_time=NOW, update_time=NOW)
    announcement = events.draft_saved(draft)
    saved = DraftSaved.FromString(announcement.message.SerializeToString())
    assert sha256(saved.content).hexdigest() == saved.content_digest
    assert contents.content(draft_pb2.DraftContent.FromString(saved.content)) == content
    assert targets.targets(saved.targets) == addressed
    assert (announcement.subject, announcement.aggregate_id) == ("events.drafts.draft", "draft")


@pytest.mark.parametrize("state", DraftState)
def test_every_state_of_a_draft_can_be_shown(state: DraftState) -> None:
    draft = Draft(
        organization_id="org",
        id="draft",
        body=contents.encoded_body(Content(text="text")),
        targets=(Target(social_account_id="a", channel="facebook"),),
        create_time=NOW,
        update_time=NOW,
        folded=FoldedState(state=state),
    )
    shown = draft_pb2.DraftState.Name(drafts.draft_message(DraftView(draft=draft, jobs=[])).state)
    assert shown == f"DRAFT_STATE_{state}"


@pytest.mark.parametrize("number", [number for number in PostJobState.values() if number])
def test_every_state_of_a_post_job_is_understood(number: PostJobState) -> None:
    changed = PostJobChanged.FromString(CHANGED)
    changed.post_job.state = number
    event = events.post_job_event(Event(organization_id="org"), changed)
    assert PostJobState.Name(number) == f"POST_JOB_STATE_{event.state}"


@pytest.mark.parametrize("damage", ["organization_id", "post_job.id", "post_job.draft_id", "post_job.state"])
def test_an_incomplete_event_is_refused(damage: str) -> None:
    changed = PostJobChanged.FromString(CHANGED)
    message = changed.post_job if damage.startswith("post_job.") else changed
    message.ClearField(damage.removeprefix("post_job."))
    with pytest.raises(InvalidRequest):
        events.post_job_event(Event(organization_id="org"), changed)


def test_an_event_of_an_unknown_kind_counts_by_its_state() -> None:
    changed = PostJobChanged.FromString(CHANGED)
    changed.kind = 99  # type: ignore[assignment]
    event = events.post_job_event(Event(organization_id="org"), changed)
    assert (event.kind, event.state) == ("99", JobState.PUBLISHED)


@pytest.mark.parametrize("damage", ["id", "state"])
def test_an_incomplete_account_is_refused(damage: str) -> None:
    connected = SocialAccountConnected.FromString(CONNECTED)
    connected.social_account.ClearField(damage)
    with pytest.raises(InvalidRequest):
        events.account("org", connected.social_account)


def test_the_stored_events_still_decode() -> None:
    saved = DraftSaved.FromString(SAVED)
    assert (saved.organization_id, saved.draft_id, saved.version, saved.revision) == ("org", "draft", 2, 1)
    assert saved.approved
    assert targets.targets(saved.targets) == (
        Target(social_account_id="page", channel="telegram", destination="@news"),
    )
    assert contents.content(draft_pb2.DraftContent.FromString(saved.content)) == Content(
        text="Hello", hashtags=("one",), channel_texts=(ChannelText(channel="telegram", text="Hi"),)
    )
    connected = SocialAccountConnected.FromString(CONNECTED)
    assert events.account(connected.organization_id, connected.social_account) == Account(
        organization_id="org", id="page", version=3, state=AccountState.CONNECTED, provider="sandbox"
    )
    event = Event(organization_id="org", payload=CHANGED)
    event.occur_time.FromDatetime(NOW)
    heard = events.post_job_event(event, PostJobChanged.FromString(CHANGED))
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


@given(st.none() | st.datetimes(min_value=datetime(2026, 1, 1), timezones=st.just(UTC)), st.text(max_size=10))
def test_a_placement_survives_the_wire(time: datetime | None, category: str) -> None:
    placement = Placement(requested_time=time, category_id=category)
    draft = Draft(
        organization_id="org",
        id="draft",
        body=contents.encoded_body(Content(text="text")),
        targets=(),
        create_time=NOW,
        update_time=NOW,
        placement=placement,
    )
    shown = drafts.draft_message(DraftView(draft=draft, jobs=[]))
    assert drafts.given_draft(shown, "").placement == placement
    both = drafts.change(shown, FieldMask(paths=["requested_time", "category_id"]))
    assert both.applied_to_placement(Placement(requested_time=NOW, category_id="other")) == placement
    assert drafts.change(shown, FieldMask(paths=["targets"])).applied_to_placement(placement) == placement
    saved = events.draft_saved(draft).message
    assert isinstance(saved, DraftSaved)
    assert (saved.HasField("requested_time"), saved.category_id) == (time is not None, category)
    assert saved.requested_time == shown.requested_time


# A refusal as this release encodes it.
REFUSED = bytes.fromhex(
    "0a036f7267120564726166741a047061676520032a0b0890a395cd06108094ef3a320a534c4f545f54414b454e3a0574616b656e420b0890"
    "a395cd06108094ef3a"
)


def test_a_refusal_is_read() -> None:
    refusal = SlotRefusal(
        social_account_id="page",
        draft_version=3,
        schedule_time=NOW,
        reason="SLOT_TAKEN",
        message="taken",
        create_time=NOW,
    )
    read = events.refused_slot(SlotRefused.FromString(REFUSED))
    assert read == RefusedSlot(organization_id="org", draft_id="draft", refusal=refusal)


@pytest.mark.parametrize("damage", ["organization_id", "draft_id", "social_account_id", "reason"])
def test_an_incomplete_refusal_is_refused(damage: str) -> None:
    message = SlotRefused.FromString(REFUSED)
    message.ClearField(damage)
    with pytest.raises(InvalidRequest):
        events.refused_slot(message)
