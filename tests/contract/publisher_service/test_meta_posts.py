"""A post is recognized by its media, or by its very text, if it is the only one; anything less proves nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher_service.adapters.providers.meta_posts import Sighting, recognized, sightings
from publisher_service.domain.outcome import Absent, Finding, Found, NoProof

SINCE = datetime(2026, 3, 2, 9, tzinfo=UTC)
PHOTOS = frozenset({"p1", "p2"})


def seen(name: str = "1", **facts: Any) -> Sighting:
    known: dict[str, Any] = {"external_url": "", "text": "hello", "time": SINCE} | facts
    return Sighting(external_id=name, **known)


def found(*posts: Sighting, text: str = "hello", media: frozenset[str] = frozenset()) -> Finding:
    return recognized(posts, text=text, since=SINCE, media=media)


def test_the_only_post_with_the_text_is_it() -> None:
    assert found(seen("1"), seen("2", text="other")) == Found(
        external_id="1", external_url="", publish_time=SINCE, is_by_text=True
    )


def test_two_posts_with_the_text_prove_nothing() -> None:
    assert isinstance(found(seen("1"), seen("2")), NoProof)


def test_an_older_post_with_the_text_is_another() -> None:
    assert found(seen(time=SINCE - timedelta(seconds=61))) == Absent()
    assert isinstance(found(seen(time=SINCE - timedelta(seconds=59))), Found)


def test_a_post_without_a_time_proves_nothing() -> None:
    assert isinstance(found(seen(time=None)), NoProof)


@pytest.mark.parametrize("text", ["hello ", "\nhello", "he\u0301llo"])
def test_a_text_that_is_nearly_the_same_is_no_proof_of_absence(text: str) -> None:
    wanted = "h\u00e9llo" if "\u0301" in text else "hello"
    assert isinstance(found(seen(text=text), text=wanted), NoProof)


def test_a_post_with_our_media_is_it_among_others_with_its_text() -> None:
    posts = (seen("1"), seen("2", media=frozenset({"p2"})), seen("3", media=frozenset({"x"})))
    hit = found(*posts, media=PHOTOS)
    assert isinstance(hit, Found)
    assert (hit.external_id, hit.is_by_text) == ("2", False)


def test_the_text_with_other_media_proves_nothing() -> None:
    assert isinstance(found(seen(media=frozenset({"x"})), media=PHOTOS), NoProof)


def test_media_that_are_not_shown_leave_the_text_as_the_proof() -> None:
    assert isinstance(found(seen(), media=PHOTOS), Found)


def test_a_post_of_media_alone_is_known_by_them() -> None:
    assert isinstance(found(seen(text="", media=PHOTOS), text="", media=PHOTOS), Found)
    assert found(seen(text="other"), text="", media=PHOTOS) == Absent()
    assert isinstance(found(seen(text="", media=frozenset({"x"})), text="", media=PHOTOS), NoProof)


def test_an_entry_that_cannot_be_read_spoils_the_list() -> None:
    assert sightings([{"id": "1"}, {"id": 2}], text="message", time="created_time", url="u") is None
    assert sightings([{"id": "1"}, "2"], text="message", time="created_time", url="u") is None


def test_what_others_have_written_is_left_out() -> None:
    entries = [{"id": "1", "by": True}, {"id": "2", "by": False}, {"id": "3", "by": None}]
    read = sightings(entries, text="message", time="created_time", url="u", is_own=lambda entry: entry["by"])
    assert [(each.external_id, each.is_own) for each in read or ()] == [("1", True), ("3", False)]


def test_what_somebody_else_may_have_written_proves_nothing() -> None:
    assert isinstance(found(seen("1", is_own=False)), NoProof)
    assert found(seen("1", is_own=False), seen("2", text="other")) != Absent()


def test_our_own_is_it_beside_what_somebody_else_may_have_written() -> None:
    hit = found(seen("1", is_own=False), seen("2"), seen("3", is_own=False))
    assert hit == Found(external_id="2", external_url="", publish_time=SINCE, is_by_text=True)
