"""Texts of LinkedIn: a reader sees exactly what was given, and hashtags work."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devstack.networks import linkedin_text as network
from publisher_service.adapters.providers.linkedin_text import is_of, little, shown

RESERVED = r"\|{}@[]()<>#*_~"
TEXTS = st.text(alphabet=st.one_of(st.sampled_from(RESERVED + "aé字1 \n"), st.characters(codec="utf-8")))
_TEMPLATE = re.compile(r"\{hashtag\|\\#\|([^\W_]+)\}")
_ESCAPED = re.compile(r"\\[\\|{}@\[\]()<>#*_~]")


@given(TEXTS)
@example("{hashtag|\\#|a}")
@example("@[Ann](urn:li:person:1)")
@example("\\")
def test_a_reader_sees_the_text_that_was_given(text: str) -> None:
    assert shown(little(text)) == text
    assert network.read(little(text)) == text


@given(TEXTS)
def test_no_reserved_character_is_left_unescaped(text: str) -> None:
    rest = _ESCAPED.sub("", _TEMPLATE.sub("", little(text)))
    assert not set(rest) & set(RESERVED)


@given(TEXTS)
def test_a_text_is_recognized_as_it_was_sent_and_as_it_is_shown(text: str) -> None:
    assert is_of(little(text), text)
    assert is_of(text, text)


@given(TEXTS, TEXTS)
def test_another_text_is_not_recognized(text: str, other: str) -> None:
    seen = {each.replace("\r\n", "\n").strip() for each in (other, little(other))}
    assert is_of(little(other), text) == (text.replace("\r\n", "\n").strip() in seen)


@given(st.text())
def test_any_commentary_can_be_read(commentary: str) -> None:
    assert isinstance(shown(commentary), str)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#news", ["news"]),
        ("see #News, #Überblick and #日本", ["News", "Überblick", "日本"]),
        ("(#one)#two", ["one", "two"]),
        ("#24h", ["24h"]),
        ("C# and #1 and ## and #", []),
        ("a#b &#39; https://example.com/#part", []),
        # LinkedIn would cut them off.
        ("#snake_case", []),
        ("#हिन्दी", []),
        ("#_a", []),
    ],
)
def test_only_whole_words_become_hashtags(text: str, tags: list[str]) -> None:
    assert _TEMPLATE.findall(little(text)) == tags


@pytest.mark.parametrize(
    ("commentary", "text"),
    [
        (r"Read \(all\) {hashtag|\#|news} {hashtag|#|a}", "Read (all) #news #a"),
        (r"By @[Ann \(A\)](urn:li:person:1)", r"By @[Ann \(A\)](urn:li:person:1)"),
        ("By @[Ann](urn:li:person:1): a*b", "By Ann: a*b"),
        ("line\r\nline ", "line\nline"),
    ],
)
def test_what_linkedin_returns_is_recognized(commentary: str, text: str) -> None:
    assert is_of(commentary, text)
