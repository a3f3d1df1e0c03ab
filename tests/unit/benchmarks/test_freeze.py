from datetime import UTC, datetime, timedelta

from benchmarks.freeze import most_in_a_second

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(*milliseconds: int) -> list[datetime]:
    return [START + timedelta(milliseconds=each) for each in milliseconds]


def test_the_busiest_second_is_found_wherever_it_begins() -> None:
    assert most_in_a_second(at(0, 900, 1000, 1100, 1899, 5000)) == 4
    assert most_in_a_second(at(0, 999)) == 2


def test_starts_a_second_apart_do_not_share_one() -> None:
    assert most_in_a_second(at(2000, 1000, 0)) == 1
    assert most_in_a_second([]) == 0
