"""An explanation shows each check in order, and the first open one decides."""

from dataclasses import replace
from datetime import timedelta

from channels.rules import FollowUpKind
from publisher_service.domain.claim import Verdict
from publisher_service.domain.explanation import Beside, CheckState, Found, explain
from publisher_service.domain.post_job import JobState
from tests.unit.publisher_service.post_jobs import LATER, NOW, sending

READY = sending(JobState.READY)
STATE = Found(
    name="STATE", verdict=Verdict.UNREADABLE, is_open=False, applies=True, values={"state": "READY", "run": None}
)
OPEN_ATTEMPT = Found(
    name="OPEN_ATTEMPT", verdict=Verdict.OPEN, is_open=False, applies=True, values={"state": "SENDING"}
)
DUE = Found(
    name="DUE",
    verdict=Beside.NOT_DUE,
    is_open=False,
    applies=True,
    values={"schedule_time": LATER},
    clear_time=LATER,
)
TARGET = Found(name="TARGET", verdict=Verdict.REMOVED, is_open=False, applies=True, values={"channel": ""})


def test_without_an_open_check_a_post_is_claimed() -> None:
    explained = explain(READY, [STATE, DUE, TARGET], now=NOW)
    assert (explained.verdict, explained.clear_time) == (Verdict.CLAIMED, None)
    assert explained.sentence == "Nothing keeps it back: it is sent at once."
    assert [each.state for each in explained.checks] == [CheckState.PASSED] * 3
    assert [each.verdict for each in explained.checks] == ["", "", ""]


def test_the_first_open_check_decides() -> None:
    found = [STATE, replace(DUE, is_open=True), replace(TARGET, is_open=True)]
    explained = explain(READY, found, now=NOW + timedelta(seconds=1))
    assert (explained.verdict, explained.clear_time) == (Beside.NOT_DUE, LATER)
    assert explained.sentence == explained.checks[1].sentence
    assert explained.read_time == NOW + timedelta(seconds=1)
    assert [each.verdict for each in explained.checks] == ["", Beside.NOT_DUE, Verdict.REMOVED]


def test_a_check_that_passes_clears_at_no_time() -> None:
    (shown,) = explain(READY, [DUE], now=NOW).checks
    assert (shown.state, shown.clear_time) == (CheckState.PASSED, None)


def test_values_that_are_missing_are_not_shown() -> None:
    shown, target = explain(READY, [STATE, TARGET], now=NOW).checks
    assert shown.values == {"state": "READY"}
    assert target.values == {}


def test_a_check_that_does_not_apply_is_not_open() -> None:
    explained = explain(READY, [replace(TARGET, is_open=True, applies=False)], now=NOW)
    assert explained.verdict == Verdict.CLAIMED
    assert explained.checks[0].state is CheckState.NOT_APPLICABLE


def test_while_an_attempt_is_open_no_later_check_applies() -> None:
    """A post that is being sent keeps its own account busy."""
    found = [STATE, replace(OPEN_ATTEMPT, is_open=True), replace(DUE, is_open=True), TARGET]
    explained = explain(sending(), found, now=NOW)
    assert explained.verdict == Verdict.OPEN
    assert [each.state for each in explained.checks] == [
        CheckState.PASSED,
        CheckState.OPEN,
        CheckState.NOT_APPLICABLE,
        CheckState.NOT_APPLICABLE,
    ]
    assert explained.checks[2].values == {}


def parent(**values: str) -> Found:
    return Found(name="PARENT", verdict=Verdict.PARENT_PENDING, is_open=True, applies=True, values=values)


def test_a_follow_up_says_what_it_waits_for() -> None:
    waiting = replace(sending(JobState.PENDING), part=1)
    explained = explain(waiting, [parent(before_state="SENDING")], now=NOW)
    assert explained.verdict == Verdict.PARENT_PENDING
    assert explained.sentence == "The first comment: it waits until the post is out, which is SENDING."


def test_a_part_of_a_thread_is_called_by_its_place() -> None:
    waiting = replace(sending(JobState.PENDING), part=2)
    failed = parent(before_state="FAILED", before_reason="REJECTED", before_post_job_id="job-1")
    explained = explain(waiting, [failed], now=NOW, kind=FollowUpKind.THREAD)
    assert explained.sentence == (
        "Part 3 of the thread: it waits until part 2 of the thread is out, which has failed (REJECTED): RetryPostJob of"
        " job-1 begins its next run."
    )


def test_every_sentence_about_a_follow_up_names_it() -> None:
    ready = replace(READY, part=1)
    assert explain(ready, [STATE], now=NOW).sentence == "The first comment: nothing keeps it back: it is sent at once."
