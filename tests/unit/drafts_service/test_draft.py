from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from drafts_service.domain.content import Body, ChannelText, Content
from drafts_service.domain.draft import (
    HORIZON,
    NO_PLACEMENT,
    PATIENCE,
    Change,
    Draft,
    Placement,
    RequestedTime,
    Withdrawal,
    approved,
    checked_placement,
    edit_given_up,
    edited,
    refused,
    require_changeable,
    require_digest,
    require_draft,
    require_etag,
    withdrawing,
)
from drafts_service.domain.post_job import FoldedState, JobState, PostJob
from drafts_service.domain.slot_refusal import SlotRefusal
from drafts_service.domain.target import Target
from servicekit.faults import Conflict, InvalidField, NotFound, Refused

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NINE + timedelta(minutes=5)
OLD, NEW = Body.of(b"old"), Body.of(b"new")
A, B = (Target(social_account_id=name, channel="facebook") for name in "ab")
DRAFT = Draft(organization_id="org", id="draft", body=OLD, targets=(A, B), create_time=NINE, update_time=NINE)
APPROVED = approved(DRAFT, approver="ann", now=NINE)


def test_new_content_raises_the_revision_and_loses_the_approval() -> None:
    draft = edited(APPROVED, body=NEW, targets=APPROVED.targets, now=LATER)
    assert (draft.body, draft.approval, draft.update_time) == (NEW, None, LATER)
    assert (draft.revision, draft.version, draft.edit_version) == (2, 3, 3)


def test_new_targets_raise_the_revision_and_keep_the_approval() -> None:
    draft = edited(APPROVED, body=OLD, targets=(A,), now=LATER)
    assert (draft.targets, draft.revision, draft.approval) == ((A,), 2, APPROVED.approval)


@pytest.mark.parametrize("before", [DRAFT, APPROVED])
def test_an_edit_that_changes_nothing_returns_the_same_draft(before: Draft) -> None:
    assert edited(before, body=OLD, targets=(B, A), now=LATER) is before


def test_a_text_may_be_out_until_publisher_rules_it_out() -> None:
    assert not DRAFT.may_be_out
    assert APPROVED.may_be_out
    assert replace(DRAFT, exposed=True).may_be_out
    assert edited(APPROVED, body=OLD, targets=(A,), now=LATER).may_be_out


def test_a_pending_withdrawal_changes_nothing_that_users_see() -> None:
    draft = withdrawing(APPROVED, below=2, now=LATER)
    assert draft.withdrawal == Withdrawal(below=2, due=LATER + PATIENCE)
    assert replace(draft, withdrawal=None) == APPROVED


def test_giving_up_an_edit_saves_a_revision_that_may_go_out() -> None:
    draft = edit_given_up(withdrawing(APPROVED, below=2, now=LATER), below=2)
    assert draft == replace(APPROVED, revision=2, version=3)
    assert draft.etag == APPROVED.etag


def test_giving_up_an_edit_that_was_made_meanwhile_does_nothing() -> None:
    changed = edited(withdrawing(APPROVED, below=2, now=NINE), body=NEW, targets=APPROVED.targets, now=LATER)
    assert changed.withdrawal is None
    assert edit_given_up(changed, below=2) is changed


def test_ending_a_withdrawal_leaves_a_later_one_alone() -> None:
    again = withdrawing(edit_given_up(withdrawing(APPROVED, below=2, now=NINE), below=2), below=3, now=LATER)
    assert edit_given_up(again, below=2) is again


def test_a_withdrawal_for_an_edit_made_before_ends_without_a_revision() -> None:
    changed = edited(APPROVED, body=NEW, targets=APPROVED.targets, now=NINE)
    assert edit_given_up(withdrawing(changed, below=2, now=LATER), below=2) == changed


def test_reverting_to_the_approved_content_does_not_restore_the_approval() -> None:
    once = edited(APPROVED, body=NEW, targets=APPROVED.targets, now=NINE)
    assert edited(once, body=OLD, targets=once.targets, now=LATER).approval is None


def test_approving_binds_the_approval_to_the_content() -> None:
    assert APPROVED.approval
    assert (APPROVED.approval.digest, APPROVED.approval.approver, APPROVED.approval.time) == (OLD.digest, "ann", NINE)
    assert (APPROVED.revision, APPROVED.version, APPROVED.edit_version) == (1, 2, 2)


def test_approving_twice_is_one_approval() -> None:
    assert approved(APPROVED, approver="bob", now=LATER) is APPROVED


def test_a_draft_with_a_pending_withdrawal_can_be_approved() -> None:
    changed = edited(APPROVED, body=NEW, targets=APPROVED.targets, now=NINE)
    waiting = withdrawing(changed, below=3, now=NINE)
    again = approved(waiting, approver="bob", now=LATER)
    assert again.approval
    assert again.approval.digest == NEW.digest
    assert again.withdrawal == waiting.withdrawal


def test_the_etag_changes_with_user_changes_and_not_with_events() -> None:
    changed = edited(APPROVED, body=OLD, targets=(A,), now=NINE)
    assert len({DRAFT.etag, APPROVED.etag, changed.etag}) == 3
    assert replace(APPROVED, folded=FoldedState(schedule_time=LATER), withdrawal=None).etag == APPROVED.etag


def test_a_draft_that_reuses_an_id_has_another_etag() -> None:
    assert replace(DRAFT, create_time=LATER).etag != DRAFT.etag


def test_a_stale_etag_is_a_conflict_and_an_empty_one_is_ignored() -> None:
    require_etag(APPROVED, "")
    require_etag(APPROVED, APPROVED.etag)
    with pytest.raises(Conflict) as conflict:
        require_etag(APPROVED, DRAFT.etag)
    assert conflict.value.reason == "ETAG_MISMATCH"


def test_another_digest_is_a_conflict_and_an_empty_one_is_ignored() -> None:
    require_digest(DRAFT, "")
    require_digest(DRAFT, OLD.digest)
    with pytest.raises(Conflict) as conflict:
        require_digest(DRAFT, NEW.digest)
    assert conflict.value.reason == "DIGEST_MISMATCH"


@pytest.mark.parametrize("state", JobState)
def test_a_draft_can_be_changed_until_a_target_is_published(state: JobState) -> None:
    job = PostJob(organization_id="org", id="job", draft_id="draft", version=1, target=A, state=state)
    if state is not JobState.PUBLISHED:
        require_changeable(DRAFT, [job])
        return
    with pytest.raises(Refused) as refusal:
        require_changeable(DRAFT, [job])
    assert refusal.value.reason == "DRAFT_PUBLISHED"


def test_the_refusal_of_a_published_draft_names_its_first_post() -> None:
    first, second = (
        PostJob(
            organization_id="org",
            id=name,
            draft_id="draft",
            version=1,
            target=A,
            state=JobState.PUBLISHED,
            publish_time=time,
            external_url=f"https://social.example/{name}",
        )
        for name, time in (("z", NINE), ("a", LATER))
    )
    with pytest.raises(Refused) as refusal:
        require_changeable(DRAFT, [second, first])
    assert refusal.value.metadata == {
        "draft_id": "draft",
        "post_job_id": "z",
        "external_url": "https://social.example/z",
        "publish_time": "2026-03-02T09:00:00+00:00",
    }


def test_a_missing_draft_is_not_found() -> None:
    assert require_draft(DRAFT, ("org", "draft")) is DRAFT
    with pytest.raises(NotFound) as absence:
        require_draft(None, ("org", "draft"))
    assert (absence.value.reason, absence.value.metadata) == ("DRAFT_NOT_FOUND", {"draft_id": "draft"})


def test_a_change_keeps_the_fields_that_it_does_not_name() -> None:
    texts = (ChannelText(channel="facebook", text="few"),)
    content = Content(text="all", hashtags=("one",), channel_texts=texts)
    assert Change().applied_to(content) == content
    assert Change(text="new").applied_to(content) == replace(content, text="new")
    assert Change(hashtags=()).applied_to(content) == replace(content, hashtags=())
    assert Change(channel_texts=()).applied_to(content) == replace(content, channel_texts=())


NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
AT_NOON = Placement(requested_time=NOON, category_id="news")


def a_refusal(account: str = "a", version: int = 1, time: datetime = NOON) -> SlotRefusal:
    return SlotRefusal(
        social_account_id=account,
        draft_version=version,
        schedule_time=time,
        reason="SLOT_TAKEN",
        message="taken",
        create_time=LATER,
    )


def test_another_placement_is_a_new_version_but_no_new_revision() -> None:
    before = withdrawing(APPROVED, below=2, now=NINE)
    draft = edited(before, body=OLD, targets=(A, B), placement=AT_NOON, now=LATER)
    assert (draft.placement, draft.update_time) == (AT_NOON, LATER)
    assert (draft.revision, draft.approval, draft.withdrawal) == (1, before.approval, before.withdrawal)
    assert (draft.version, draft.edit_version) == (before.version + 1, before.edit_version + 1)
    assert edited(draft, body=OLD, targets=(B, A), placement=AT_NOON, now=LATER) is draft
    assert edited(draft, body=NEW, targets=(A, B), now=LATER).placement == AT_NOON


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    assert Change(text="x").applied_to_placement(AT_NOON) == AT_NOON
    assert Change(requested_time=RequestedTime(None)).applied_to_placement(AT_NOON) == Placement(category_id="news")
    assert Change(category_id="").applied_to_placement(AT_NOON) == Placement(requested_time=NOON)
    assert Change(brand_id="bakery").applied_to_placement(AT_NOON) == replace(AT_NOON, brand_id="bakery")
    assert Change(requested_time=RequestedTime(NINE)).applied_to_placement(NO_PLACEMENT) == Placement(
        requested_time=NINE
    )
    assert not Change(requested_time=RequestedTime(None), category_id="x").is_of_text
    assert all(each.is_of_text for each in (Change(text=""), Change(hashtags=()), Change(targets=())))


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (NOON - timedelta(minutes=1), ""),
        (NOON - timedelta(minutes=1, microseconds=1), "is more than a minute ago"),
        (NOON + HORIZON, ""),
        (NOON + HORIZON + timedelta.resolution, "is more than 730 days ahead"),
    ],
)
def test_a_new_time_lies_between_a_minute_ago_and_the_horizon(time: datetime, words: str) -> None:
    placement = Placement(requested_time=time)
    if not words:
        assert checked_placement(placement, before=AT_NOON, now=NOON) is placement
        return
    with pytest.raises(InvalidField) as refusal:
        checked_placement(placement, before=AT_NOON, now=NOON)
    assert [each.field for each in refusal.value.violations] == ["draft.requested_time"]
    assert words in refusal.value.message


def test_a_time_that_has_passed_meanwhile_may_stay() -> None:
    for placement in (AT_NOON, Placement(requested_time=NOON), NO_PLACEMENT):
        assert checked_placement(placement, before=AT_NOON, now=NOON + timedelta(days=9)) is placement


def test_refusals_end_with_the_time_or_the_account_they_are_about() -> None:
    draft = refused(replace(DRAFT, placement=AT_NOON), [a_refusal("b"), a_refusal("a")])
    assert draft.refusals == (a_refusal("a"), a_refusal("b"))
    assert draft.version == DRAFT.version
    assert edited(draft, body=NEW, targets=(B,), now=LATER).refusals == (a_refusal("b"),)
    assert edited(draft, body=OLD, targets=(A, B), placement=replace(AT_NOON, category_id="x"), now=LATER).refusals
    for placement in (NO_PLACEMENT, Placement(requested_time=NINE)):
        assert edited(draft, body=OLD, targets=(A, B), placement=placement, now=LATER).refusals == ()
