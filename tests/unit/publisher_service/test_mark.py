from datetime import UTC, datetime

from publisher_service.domain.mark import Mark, highest
from publisher_service.wire.marks import marks_from, marks_value

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_mark(process: str, number: int) -> Mark:
    return Mark(process=process, number=number, time=NOW)


def test_of_each_process_the_highest_mark_counts() -> None:
    assert highest([a_mark("one", 2), a_mark("two", 1), a_mark("one", 3), a_mark("one", 1)]) == {
        "one": a_mark("one", 3),
        "two": a_mark("two", 1),
    }


def test_marks_survive_the_way_through_nats() -> None:
    marks = {"one": a_mark("one", 7), "two": a_mark("two", 1)}
    assert marks_from(marks_value(marks)) == marks
    assert marks_from(None) == {}
