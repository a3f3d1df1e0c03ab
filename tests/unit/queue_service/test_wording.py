"""Times and numbers in sentences."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from queue_service.domain.wording import counted, duration, instant, listed, sentence


def test_an_instant_is_written_in_utc() -> None:
    there = datetime(2026, 3, 2, 1, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert instant(there) == instant(there.astimezone(UTC)) == "2026-03-01 23:00:05 UTC"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (59, "59 seconds"), (60, "1 minute"), (7199, "1 hour"), (86_400, "1 day"), (200_000, "2 days")],
)
def test_a_duration_is_written_in_its_largest_unit(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def test_one_is_singular() -> None:
    assert (counted(1, "slot"), counted(2, "slot")) == ("1 slot", "2 slots")


@pytest.mark.parametrize(("parts", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ([*"abc"], "a, b and c")])
def test_parts_are_joined(parts: list[str], text: str) -> None:
    assert listed(parts) == text


def test_a_clause_becomes_a_sentence_with_one_full_stop() -> None:
    assert (sentence("it is."), sentence("it is")) == ("It is.", "It is.")
