from datetime import UTC, datetime, timedelta

from publisher_service.application.marks import Marks
from publisher_service.domain.mark import Mark

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_mark(process: str, number: int, *, age: timedelta = timedelta(0)) -> Mark:
    return Mark(process=process, number=number, time=NOW - age)


def test_a_process_learns_only_higher_marks() -> None:
    marks = Marks("one")
    marks.learn([a_mark("two", 5)])
    marks.learn([a_mark("two", 4)])
    marks.reach(a_mark("one", 1))
    assert marks.known == {"one": a_mark("one", 1), "two": a_mark("two", 5)}
    assert marks.changed.is_set()


def test_only_old_marks_that_are_covered_are_forgotten() -> None:
    old = timedelta(hours=1)
    marks = Marks("one")
    marks.learn(
        [a_mark("ended", 5, age=old), a_mark("late", 5, age=old), a_mark("alive", 5), a_mark("new", 1, age=old)]
    )
    covered = {"ended": a_mark("ended", 5), "late": a_mark("late", 4), "alive": a_mark("alive", 5)}
    marks.forget(covered, before=NOW - timedelta(minutes=10))
    assert set(marks.known) == {"late", "alive", "new"}
