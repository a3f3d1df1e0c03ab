"""Texts as they are sent: hashtags and links stand below what is said, and alone if nothing is."""

import pytest

from channels.texts import is_blank, with_hashtags, with_link


@pytest.mark.parametrize(
    ("text", "hashtags", "sent"),
    [
        ("all", (), "all"),
        ("all", ("a", "b"), "all\n\n#a #b"),
        ("", ("a",), "#a"),
        (" \n", ("a",), "#a"),
        ("", (), ""),
    ],
)
def test_hashtags_stand_below_the_text(text: str, hashtags: tuple[str, ...], sent: str) -> None:
    assert with_hashtags(text, hashtags) == sent


@pytest.mark.parametrize(
    ("text", "link", "sent"),
    [
        ("all", "", "all"),
        ("all", "https://x.example", "all\n\nhttps://x.example"),
        ("see https://x.example!", "https://x.example", "see https://x.example!"),
        ("", "https://x.example", "https://x.example"),
    ],
)
def test_a_link_stands_below_the_text_unless_it_is_in_it(text: str, link: str, sent: str) -> None:
    assert with_link(text, link) == sent


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), (" \n\t", True), ("\u200b\u2060", True), ("\U0001f600", False)]
)
def test_a_text_is_blank_if_nothing_is_to_be_seen(text: str, *, expected: bool) -> None:
    assert is_blank(text) is expected
