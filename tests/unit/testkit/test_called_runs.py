"""Checks hand-made histories of PublishNow and RetryPostJob."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testkit.clocks import START
from testkit.stack.called_runs import Called, CalledRun, Refusal, refused_wrongly, unsent
from testkit.stack.stops import Scope, Stop

Row = Mapping[str, Any]
SECOND = timedelta(seconds=1)
RUN = CalledRun(organization_id="o", post_job_id="job", run=2, version=7, what="PublishNow", older=frozenset({"Old"}))
JOB: Row = {"id": "job", "run": 2}
ATTEMPT: Row = {"post_job_id": "job", "run": 2}
EFFECT: Row = {"idempotency_key": "job-2", "text": "New", "time": START.isoformat()}
REFUSAL = Refusal(
    organization_id="o",
    social_account_id="a",
    post_job_id="job",
    reason="ALREADY_PUBLISHED",
    asked=START,
    answered=START + SECOND,
)
STOP = Stop(
    organization_id="o",
    scope=Scope(social_account_id="a"),
    what="PauseQueue",
    asked=START - 3 * SECOND,
    answered=START - 2 * SECOND,
)


def said(*states: str, since: int = 7, run: int = 2) -> Sequence[Row]:
    """Returns events of the job, each with a state and, if given, a reason."""
    return [
        {
            "post_job_id": "job",
            "run": run,
            "version": since + number,
            "state": state.partition(" ")[0],
            "state_reason": state.partition(" ")[2],
        }
        for number, state in enumerate(states)
    ]


def found(*events: Row, job: Row = JOB, attempts: Sequence[Row] = (ATTEMPT,), effect: Row = EFFECT) -> Sequence[str]:
    return list(unsent(Called(runs=(RUN,)), {"job": job}, attempts, events, [effect]))


def test_a_run_that_was_sent_keeps_the_promise() -> None:
    assert found(*said("PENDING", "SCHEDULED", since=1), *said("READY", "PUBLISHED")) == []
    assert found(*said("READY", "FAILED"), *said("CANCELED TAKEN_BACK", since=9, run=3), job={**JOB, "run": 3}) == []


@pytest.mark.parametrize("end", ["CANCELED TARGET_REMOVED", "FAILED"])
def test_a_run_may_end_unsent_with_its_target_or_by_the_provider(end: str) -> None:
    assert found(*said("READY", "WAITING MEDIA", end), attempts=()) == []


def test_a_run_that_is_gone_is_found() -> None:
    assert found(job={**JOB, "run": 1}) == ["PublishNow began run job-2, the job is at run 1"]


@pytest.mark.parametrize("end", ["CANCELED TAKEN_BACK", "PENDING", "SCHEDULED"])
def test_a_run_that_a_slot_has_ended_is_found(end: str) -> None:
    (text,) = found(*said("READY", end))
    assert "which a slot has ended" in text


@pytest.mark.parametrize("end", ["READY", "BLOCKED NOT_APPROVED", "MISSED"])
def test_a_run_that_was_never_sent_is_found(end: str) -> None:
    (text,) = found(*said("READY", end), attempts=())
    assert "which was never sent" in text


def test_an_older_text_is_found() -> None:
    assert found(*said("PUBLISHED"), effect={**EFFECT, "text": "Old"}) == [
        "PublishNow began run job-2, which published the older text 'Old'"
    ]


def test_a_repeat_with_another_answer_is_found() -> None:
    assert list(unsent(Called(differing=("it differs",)), {}, (), (), ())) == ["it differs"]


def refused(refusal: Refusal, *stops: Stop, effects: Sequence[Row] = ()) -> Sequence[str]:
    return list(refused_wrongly([refusal], stops, {"job": effects}))


def test_what_is_out_before_the_answer_is_already_published() -> None:
    assert refused(REFUSAL, effects=[EFFECT]) == []
    assert refused(REFUSAL)
    assert refused(REFUSAL, effects=[{**EFFECT, "time": (START + 2 * SECOND).isoformat()}])


HELD = replace(REFUSAL, reason="ACCOUNT_ON_HOLD")


@pytest.mark.parametrize(
    ("stops", "is_true"),
    [
        pytest.param([STOP], True, id="held"),
        pytest.param([replace(STOP, asked=START + SECOND / 2)], True, id="held meanwhile"),
        pytest.param([replace(STOP, over=START + SECOND / 2)], True, id="released meanwhile"),
        pytest.param([replace(STOP, scope=Scope(provider="p"))], True, id="held by a wider hold"),
        pytest.param([], False, id="never held"),
        pytest.param([replace(STOP, asked=START + 2 * SECOND)], False, id="held later"),
        pytest.param([replace(STOP, over=START - SECOND)], False, id="released before"),
        pytest.param([replace(STOP, scope=Scope(social_account_id="b"))], False, id="another account"),
        pytest.param([replace(STOP, what="DisconnectAccount")], False, id="another stop"),
    ],
)
def test_a_refusal_needs_the_stop_that_it_names(stops: Sequence[Stop], is_true: bool) -> None:
    assert (refused(HELD, *stops) == []) is is_true


def test_other_reasons_are_not_judged() -> None:
    assert refused(replace(REFUSAL, reason="ATTEMPT_OPEN")) == []
