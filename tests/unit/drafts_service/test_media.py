"""Media of a draft is pinned by what was found, and refused for what will not pass by itself."""

import pytest

from channels.validation import KnownMedia, MediaKind
from drafts_service.domain.content import ChannelMedia, Content, Media, MediaFacts
from drafts_service.domain.media import (
    MediaProblem,
    facts_of,
    known_media,
    pinned,
    require_usable,
    unpinned,
    with_facts_of,
    without_facts,
)
from servicekit.faults import InvalidRequest

ONE, TWO = "https://x.example/1.jpg", "https://x.example/2.jpg"
FACTS = MediaFacts(sha256="a" * 64, kind=MediaKind.IMAGE, content_type="image/jpeg", size=5, width=4, height=3)
CONTENT = Content(text="all", media=(Media(url=ONE), Media(url=TWO, alt_text="two")))
GONE = MediaProblem(reason="MEDIA_NOT_SERVED", message="its server answers 404", may_pass=False)
PENDING = MediaProblem(reason="MEDIA_PENDING", message="is still being fetched", may_pass=True)


def test_what_was_found_pins_its_media_alone() -> None:
    after = pinned(CONTENT, {ONE: FACTS, TWO: PENDING})
    assert [each.facts for each in after.media] == [FACTS, None]
    assert (unpinned(CONTENT), unpinned(after), facts_of(after)) == ([ONE, TWO], [TWO], {ONE: FACTS})


def test_an_edit_keeps_what_was_known_of_media_that_stays() -> None:
    known = pinned(CONTENT, {ONE: FACTS, TWO: FACTS})
    edited = Content(text="new", media=(Media(url=TWO, alt_text="new"), Media(url="https://x.example/3.jpg")))
    assert with_facts_of(edited, known).media == (
        Media(url=TWO, alt_text="new", facts=FACTS),
        Media(url="https://x.example/3.jpg"),
    )


def test_a_problem_that_stays_is_shown_by_its_field() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        require_usable(CONTENT, {ONE: PENDING, TWO: GONE})
    assert refusal.value.reason == "MEDIA_REFUSED"
    (violation,) = refusal.value.violations
    assert violation.field == "draft.content.media[1].url"
    assert violation.description == "its server answers 404 (MEDIA_NOT_SERVED)"


def test_a_problem_that_may_pass_refuses_nothing() -> None:
    require_usable(CONTENT, {ONE: PENDING})


def test_rules_ask_about_the_facts() -> None:
    assert known_media(Media(url=ONE)) == KnownMedia()
    assert known_media(Media(url=ONE, facts=FACTS)) == KnownMedia(
        kind=MediaKind.IMAGE, content_type="image/jpeg", size=5, width=4, height=3
    )


def test_the_media_of_a_channel_is_pinned_and_refused_alike() -> None:
    own = ChannelMedia(channel="facebook", media=(Media(url=ONE), Media(url=TWO)))
    content = Content(text="all", media=(Media(url=ONE),), channel_media=(own,))
    after = pinned(content, {ONE: FACTS, TWO: GONE})
    assert [each.facts for each in after.all_media] == [FACTS, FACTS, None]
    assert without_facts(after) == content
    assert with_facts_of(content, after) == after
    with pytest.raises(InvalidRequest) as refusal:
        require_usable(content, {TWO: GONE})
    assert refusal.value.violations[0].field == "draft.content.channel_media[0].media[1].url"
