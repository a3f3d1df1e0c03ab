from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testkit.clocks import START
from testkit.stack.history import Acknowledged, History
from testkit.stack.promises import violations
from testkit.stack.stops import Stop, started_anyway

SECOND = timedelta(seconds=1)
STOP = Stop(organization_id="o", social_account_id="a", what="PauseQueue", answered=START)
JOBS = {"job": {"id": "job", "organization_id": "o", "social_account_id": "a"}}


def found(stop: Stop, seconds: float) -> Sequence[str]:
    effect = {"id": "sp-1", "time": (START + seconds * SECOND).isoformat()}
    return list(started_anyway([stop], JOBS, {"job": [effect]}))


def test_a_post_that_goes_out_after_the_answer_is_found() -> None:
    assert found(STOP, 1.5) == ["job job went out 1.500 s after PauseQueue of a"]


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        pytest.param(STOP, -0.1, id="before the answer"),
        pytest.param(replace(STOP, until=START + SECOND), 1.1, id="after the resumption"),
        pytest.param(replace(STOP, in_flight=frozenset({"job"})), 0.1, id="named by the answer"),
        pytest.param(replace(STOP, social_account_id="b"), 0.1, id="another account"),
        pytest.param(replace(STOP, organization_id="p"), 0.1, id="another organization"),
    ],
)
def test_other_posts_may_go_out(stop: Stop, seconds: float) -> None:
    assert found(stop, seconds) == []


@pytest.mark.parametrize(
    ("promise", "acknowledged"), [("G19", Acknowledged(pauses=[STOP])), ("G6", Acknowledged(removals=[STOP]))]
)
def test_each_kind_of_stop_is_a_promise(promise: str, acknowledged: Acknowledged) -> None:
    effect = {"id": "sp-1", "time": (START + SECOND).isoformat(), "idempotency_key": "job-1", "text": "Text"}
    job: dict[str, Any] = {
        **JOBS["job"],
        "draft_id": "d",
        "channel": "facebook",
        "destination": "",
        "state": "PUBLISHED",
        "run": 1,
        "schedule_time": START,
        "next_action_time": None,
        "lease_end": None,
        "external_id": "sp-1",
        "max_attempts": 5,
    }
    attempt = {"post_job_id": "job", "run": 1, "idempotency_key": "job-1", "start_time": START}
    history = History(
        now=START + 10 * SECOND,
        acknowledged=acknowledged,
        effects=[effect],
        jobs=[job],
        attempts=[attempt],
    )
    assert [text.split(":")[0] for text in violations(history) if "PauseQueue" in text] == [promise]
