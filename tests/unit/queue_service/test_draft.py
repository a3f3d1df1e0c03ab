"""A draft's targets and accounts, and why a call for some of them is refused."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from queue_service.domain.draft import Draft, LockedDraft, PublishedTarget, Target
from queue_service.domain.slot import BlockingSlot
from servicekit.faults import Refused

FEED = Target(social_account_id="page", channel="facebook", destination="")
STORY = Target(social_account_id="page", channel="facebook_story", destination="")
NEWS = Target(social_account_id="bot", channel="telegram", destination="@news")
DRAFT = Draft(organization_id="acme", id="d1", revision=7, targets=(FEED, NEWS, STORY))
EMPTY = Draft(organization_id="acme", id="d1", revision=7, targets=())
QUEUED = BlockingSlot(
    slot_id="s1", social_account_id="page", schedule_time=datetime(2026, 3, 2, 9, 30, 0, 500, tzinfo=UTC)
)


def sent(target: Target) -> PublishedTarget:
    return PublishedTarget(target=target, job_id=f"job-{target.channel}", external_url=f"https://{target.channel}/1")


def locked(*published: PublishedTarget, draft: Draft = DRAFT, queued: BlockingSlot | None = None) -> LockedDraft:
    return LockedDraft(draft=draft, live=(queued,) if queued else (), published=published)


@pytest.mark.parametrize(("account", "targets"), [("page", (FEED, STORY)), ("bot", (NEWS,)), ("other", ())])
def test_the_targets_on_an_account_keep_their_order(account: str, targets: tuple[Target, ...]) -> None:
    assert DRAFT.targets_on(account) == targets


@pytest.mark.parametrize(
    ("accounts", "has_all"),
    [([], True), (["page"], True), (["bot", "page", "bot"], True), (["page", "other"], False), (["other"], False)],
)
def test_a_draft_has_all_accounts_if_none_is_missing(accounts: list[str], has_all: bool) -> None:
    assert DRAFT.has_all(accounts) is has_all


@pytest.mark.parametrize(
    ("removed", "left"),
    [([], (FEED, NEWS, STORY)), ([NEWS, NEWS], (FEED, STORY)), ([FEED, NEWS, STORY], ())],
)
def test_a_draft_without_some_targets_keeps_the_others(removed: list[Target], left: tuple[Target, ...]) -> None:
    assert DRAFT.without(removed) == Draft(organization_id="acme", id="d1", revision=7, targets=left)


def test_a_target_elsewhere_on_the_same_channel_is_another_target() -> None:
    other = Target(social_account_id="bot", channel="telegram", destination="@sport")
    assert DRAFT.without([other]) == DRAFT


@pytest.mark.parametrize(
    ("asked", "accounts"),
    [
        ([], ("bot", "page")),
        (["page"], ("page",)),
        (["page", "bot"], ("page", "bot")),
        (["page", "bot", "page", "bot"], ("page", "bot")),
    ],
)
def test_the_accounts_asked_for_are_named_once_and_none_means_all(asked: list[str], accounts: tuple[str, ...]) -> None:
    assert DRAFT.accounts(asked) == accounts


@pytest.mark.parametrize("asked", [["other"], ["page", "other", "third"]])
def test_an_account_that_the_draft_does_not_have_is_refused(asked: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        DRAFT.accounts(asked)
    assert refused.value.reason == "ACCOUNT_NOT_A_TARGET"
    assert refused.value.metadata == {"social_account_id": "other", "draft_id": "d1"}


@pytest.mark.parametrize("asked", [[], ["page"]])
def test_a_draft_without_targets_is_refused(asked: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        EMPTY.accounts(asked)
    assert refused.value.reason == "ACCOUNT_NOT_A_TARGET"
    assert refused.value.message == "the draft has no targets"
    assert refused.value.metadata == {"draft_id": "d1"}


@pytest.mark.parametrize(
    ("published", "left"),
    [
        ((), (FEED, NEWS, STORY)),
        ((FEED,), (NEWS, STORY)),
        ((STORY,), (FEED, NEWS)),
    ],
)
def test_only_targets_that_have_not_been_sent_remain(published: tuple[Target, ...], left: tuple[Target, ...]) -> None:
    assert locked(*map(sent, published)).unpublished(DRAFT, ["page", "bot"]).targets == left


def test_a_removed_target_that_was_sent_leaves_the_others() -> None:
    removed = Target(social_account_id="page", channel="facebook_reel", destination="")
    assert locked(sent(removed)).unpublished(DRAFT, ["page"]) == DRAFT


@pytest.mark.parametrize(
    ("published", "account", "channel"),
    [((NEWS,), "bot", "telegram"), ((FEED, STORY), "page", "facebook"), ((FEED, NEWS), "bot", "telegram")],
)
def test_an_account_on_which_all_targets_were_sent_is_refused(
    published: tuple[Target, ...], account: str, channel: str
) -> None:
    with pytest.raises(Refused) as refused:
        locked(*map(sent, published)).unpublished(DRAFT, ["page", "bot"])
    assert refused.value.reason == "DRAFT_PUBLISHED"
    assert refused.value.metadata == {
        "draft_id": "d1",
        "social_account_id": account,
        "post_job_id": f"job-{channel}",
        "external_url": f"https://{channel}/1",
    }


def test_an_account_removed_since_the_draft_was_read_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        locked().unpublished(DRAFT, ["page", "removed"])
    assert refused.value.reason == "ACCOUNT_NOT_A_TARGET"


@pytest.mark.parametrize("draft", [DRAFT, EMPTY])
def test_a_draft_in_the_queue_is_refused_before_anything_else(draft: Draft) -> None:
    with pytest.raises(Refused) as refused:
        locked(sent(NEWS), draft=draft, queued=QUEUED).unpublished(draft, ["page", "bot"])
    assert refused.value.reason == "ALREADY_QUEUED"
    assert refused.value.metadata == {
        "social_account_id": "page",
        "queue_slot_id": "s1",
        "schedule_time": "2026-03-02T09:30:00.000500Z",
    }


def test_slots_and_sent_targets_on_other_accounts_do_not_matter() -> None:
    known = locked(sent(FEED), sent(STORY), queued=QUEUED)
    assert known.unpublished(DRAFT, ["bot"]) == DRAFT


@pytest.mark.parametrize(("read", "known", "newer"), [(7, 8, 8), (8, 7, 8)])
def test_the_newer_of_what_was_read_and_what_is_known_counts(read: int, known: int, newer: int) -> None:
    of_known = locked(draft=replace(DRAFT, revision=known))
    assert of_known.unpublished(replace(DRAFT, revision=read), ["page"]).revision == newer


def test_a_draft_that_got_a_slot_is_queued_on_its_account() -> None:
    known = locked().with_slots([QUEUED])
    with pytest.raises(Refused) as refused:
        known.unpublished(DRAFT, ["page"])
    assert refused.value.metadata["queue_slot_id"] == "s1"
    assert known.unpublished(DRAFT, ["bot"]) == DRAFT
