"""Every check has words for each way in which it may stand, and they name only what the check compares."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from publisher_service.adapters.postgres.explanations import TRACE
from publisher_service.domain.claim import Verdict
from publisher_service.domain.explanation import Beside
from publisher_service.domain.post_job import JobState
from publisher_service.domain.sentences import (
    WORDINGS,
    Value,
    going_sentence,
    idle_sentence,
    open_sentence,
    passed_sentence,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
VALUES = {check.name: set(check.values) for check in TRACE} | {"CREDENTIALS": set()}


def texts(name: str) -> Iterator[str]:
    wording = WORDINGS[name]
    yield from (wording.passed, wording.open, *wording.cases.values())


def test_every_verdict_but_claimed_has_a_check() -> None:
    made = {check.verdict for check in TRACE} | {Beside.CREDENTIALS_UNREADABLE}
    assert made == {*Verdict, *Beside} - {Verdict.CLAIMED}


def test_no_two_checks_have_one_name() -> None:
    names = [check.name for check in TRACE]
    assert len(names) == len(set(names))
    # Only the wait for an account has several reasons.
    verdicts = [check.verdict for check in TRACE if check.verdict is not Verdict.ACCOUNT_BUSY]
    assert len(verdicts) == len(set(verdicts))


def test_every_check_has_its_words_and_no_other_has() -> None:
    assert WORDINGS.keys() == VALUES.keys()


@pytest.mark.parametrize("name", WORDINGS)
def test_words_name_only_what_the_check_compares(name: str) -> None:
    for each in texts(name):
        assert set(re.findall(r"\{(\w+)\}", each)) <= VALUES[name]
    assert WORDINGS[name].by in VALUES[name] | {""}


def test_what_is_missing_is_left_out() -> None:
    full: dict[str, Value] = {
        "scope_id": "page",
        "reason": "wrong price",
        "hold_id": "h1",
        "holder": "ann",
        "since": NOON,
    }
    assert open_sentence("ACCOUNT_HOLD", full) == (
        "A hold covers account page: wrong price (hold h1, put by ann, since 2026-03-02 12:00:00 UTC)."
    )
    nameless = {name: value for name, value in full.items() if name != "holder"}
    assert open_sentence("ACCOUNT_HOLD", nameless) == (
        "A hold covers account page: wrong price (hold h1, since 2026-03-02 12:00:00 UTC)."
    )


def test_what_people_have_written_is_not_read_as_a_template() -> None:
    values: dict[str, Value] = {
        "scope_id": "page",
        "reason": "[see {hold_id}] {",
        "hold_id": "h1",
        "since": NOON,
    }
    assert ": [see {hold_id}] { (hold h1, since" in open_sentence("ACCOUNT_HOLD", values)


def test_a_value_chooses_among_the_cases() -> None:
    assert open_sentence("OPEN_ATTEMPT", {"state": "SENDING"}) == "It is being sent."
    assert open_sentence("WAIT", {"state_reason": "NEWER", "until": NOON}) == (
        "It waits until 2026-03-02 12:00:00 UTC (NEWER)."
    )


def test_a_post_that_only_has_to_join_the_line_is_not_behind_others() -> None:
    assert open_sentence("LINE", {"posts_before": 2}) == "Other posts of the account go first: 2."
    assert open_sentence("LINE", {"posts_before": 0}).startswith("It joins the line of the account")


def test_a_pause_says_how_many_requests_did_not_reach_the_provider() -> None:
    said = open_sentence("ACCOUNT_PAUSE", {"resume_time": NOON})
    assert said.endswith("could not be reached.")
    said = open_sentence("ACCOUNT_PAUSE", {"resume_time": NOON, "failures": 3})
    assert said.endswith("could not be reached (3 requests in a row).")


def test_checks_that_pass_or_do_not_apply_say_so() -> None:
    assert passed_sentence("TARGET", {}) == "It is a target of the draft."
    assert idle_sentence("TIME") == "It does not concern this post."


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED])
def test_a_post_that_nothing_keeps_back_is_said_to_go(state: JobState) -> None:
    assert going_sentence(state).startswith("Nothing keeps it back")
