"""Facts are known again, and their texts begin no header and show no secret."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.notification import (
    CHOSEN,
    LONGEST_ERROR,
    Notification,
    NotificationKind,
    is_news,
    one_line,
    shown_error,
)
from testkit.clocks import START

FACT = Notification(
    organization_id="acme", kind=NotificationKind.POST_FAILED, subject_id="j1", occasion="1", time=START
)


def test_a_fact_is_known_again_by_its_natural_key() -> None:
    assert replace(FACT, time=START + timedelta(hours=1), facts={"a": 1}).id == FACT.id
    others = [
        replace(FACT, organization_id="other"),
        replace(FACT, kind=NotificationKind.POST_PUBLISHED),
        replace(FACT, subject_id="j2"),
        replace(FACT, occasion="2"),
    ]
    assert len({FACT.id, *(each.id for each in others)}) == 5


def test_nobody_chooses_tests_and_digests() -> None:
    assert set(NotificationKind) - set(CHOSEN) == {NotificationKind.TEST, NotificationKind.DIGEST}


@pytest.mark.parametrize(("hours", "news"), [(-1, True), (24, True), (25, False)])
def test_what_is_older_than_the_limit_is_no_news(hours: int, news: bool) -> None:
    assert is_news(replace(FACT, time=START - timedelta(hours=hours)), now=START, max_age=timedelta(hours=24)) is news


@given(st.text(), st.integers(5, 40))
def test_a_line_is_one_line_and_no_longer(text: str, most: int) -> None:
    line = one_line(text, most=most)
    assert len(line) <= most
    assert not set(line) & set("\r\n\t\0\x85\u2028\u2029\u202e")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("The image is too large", "The image is too large"),
        ("Error validating access_token: abc has expired", "Error validating access_token: *** has expired"),
        ("bad token=abc", "bad token=***"),
        ("the key is missing", "the key is missing"),
        ("no AbCdefGhIjklmNopQrSt", "no ***"),
        ("Bearer abc.def refused", "Bearer *** refused"),
        ("no EAABsbCS1iHgBAKZCZD9", "no ***"),
        ("no 0123456789abcdef0123", "no ***"),
        ("Internationalization failed", "Internationalization failed"),
        ("a\r\nBcc: eve@example.com", "a Bcc: eve@example.com"),
        ("x" * 400, "x" * (LONGEST_ERROR - 3) + "..."),
    ],
)
def test_an_error_is_shown_without_what_looks_like_a_secret(said: str, shown: str) -> None:
    assert shown_error(said) == shown
