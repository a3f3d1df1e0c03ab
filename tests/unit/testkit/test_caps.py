"""Checks hand-made histories of accounts with daily caps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testkit.clocks import START
from testkit.stack.caps import Cap, Sent, miscounted, over_caps, sent_posts

Row = Mapping[str, Any]
SECOND = timedelta(seconds=1)
CAP = Cap(organization_id="o", social_account_id="a", most=1, asked=START - SECOND, answered=START)
JOB: Row = {"id": "job", "organization_id": "o", "social_account_id": "a", "run": 1, "state": "PUBLISHED"}
JOBS = {"job": JOB}
EFFECT: Row = {"idempotency_key": "job-1", "time": (START + SECOND).isoformat()}


def sent(*seconds: float, account: str = "a", days: int = 0) -> list[Sent]:
    times = [START + each * SECOND + timedelta(days=days) for each in seconds]
    return [
        Sent(account=("o", account), key=f"job-{number}", begun=time, time=time)
        for number, time in enumerate(times, start=1)
    ]


@pytest.mark.parametrize(
    ("cap", "posts"),
    [
        pytest.param(CAP, sent(1), id="as many as allowed"),
        pytest.param(CAP, [*sent(1), *sent(1, days=1)], id="on two days"),
        pytest.param(CAP, [*sent(1), *sent(1, account="b")], id="on two accounts"),
        pytest.param(replace(CAP, until=START + SECOND), sent(0.5, 2), id="after the next cap"),
        pytest.param(replace(CAP, most=None), sent(1, 2), id="no cap"),
        pytest.param(replace(CAP, most=0, below_used=True), sent(-2, -1), id="used before"),
        pytest.param(CAP, sent(-86402, -86401), id="on the day before"),
    ],
)
def test_what_a_cap_allows_may_go_out(cap: Cap, posts: Sequence[Sent]) -> None:
    assert list(over_caps([cap], posts, passing=frozenset())) == []


@pytest.mark.parametrize(
    ("cap", "posts"),
    [
        pytest.param(CAP, sent(1, 2), id="one too many"),
        pytest.param(CAP, sent(-1, 2), id="one before the cap counts"),
        pytest.param(replace(CAP, most=0), sent(1), id="a cap of nothing"),
        pytest.param(replace(CAP, most=0, below_used=True), sent(-2, 1), id="below what was used"),
    ],
)
def test_a_post_over_the_cap_is_found(cap: Cap, posts: Sequence[Sent]) -> None:
    assert list(over_caps([cap], posts, passing=frozenset()))
    assert list(over_caps([cap], posts, passing={"job-1", "job-2"})) == []


def test_a_post_counts_for_the_day_on_which_its_attempt_began() -> None:
    starts = [START - SECOND, START + SECOND / 2, START + 2 * SECOND]
    attempts = [{"idempotency_key": "job-1", "start_time": start} for start in starts]
    (post,) = sent_posts(JOBS, attempts, {"job": [EFFECT]})
    assert (post.account, post.begun, post.time) == (("o", "a"), starts[1], START + SECOND)


def logged(outcome: str, seconds: float = 0) -> Row:
    time = START + seconds * SECOND
    return {"id": f"{seconds}", "post_job_id": "job", "run": 1, "outcome": outcome, "create_time": time}


PLACE: Row = {"post_job_id": "job", "run": 1}


def counted(log: Sequence[Row], places: Sequence[Row], *, is_out: bool = True) -> Sequence[str]:
    effects = {"job": [EFFECT] if is_out else []}
    return list(miscounted(JOBS, effects, log, places, {("o", "a")}))


def test_log_and_places_agree_with_the_ledger() -> None:
    assert counted([logged("UNKNOWN"), logged("ABSENT", 1), logged("SUCCESS", 2)], [PLACE]) == []
    assert counted([logged("UNKNOWN")], [PLACE, PLACE]) == []
    assert counted([logged("UNKNOWN"), logged("ABSENT", 1)], [], is_out=False) == []
    assert counted([logged("FAILED")], [], is_out=False) == []


@pytest.mark.parametrize(
    ("log", "places", "is_out"),
    [
        pytest.param([], [PLACE], True, id="out, and not in the log"),
        pytest.param([logged("SUCCESS"), logged("ABSENT", 1)], [], True, id="out, and the log denies it"),
        pytest.param([logged("SUCCESS")], [PLACE], False, id="not out, and the log says it is"),
        pytest.param([logged("SUCCESS")], [], True, id="out, and without a place"),
        pytest.param([logged("FAILED")], [PLACE], False, id="a place for nothing"),
        pytest.param([logged("SUCCESS")], [PLACE, PLACE], True, id="two places for one post"),
    ],
)
def test_a_wrong_count_is_found(log: Sequence[Row], places: Sequence[Row], is_out: bool) -> None:
    assert counted(log, places, is_out=is_out)


def test_what_a_person_has_to_look_for_may_be_out() -> None:
    jobs = {"job": {**JOB, "state": "NEEDS_ATTENTION"}}
    assert list(miscounted(jobs, {"job": [EFFECT]}, [logged("ABSENT")], [], {("o", "a")})) == []


def test_an_account_without_a_cap_needs_no_places() -> None:
    assert list(miscounted(JOBS, {"job": [EFFECT]}, [logged("SUCCESS")], [], frozenset())) == []
