from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testkit.clocks import START
from testkit.stack.history import Acknowledged, History
from testkit.stack.promises import violations
from testkit.stack.stops import EVERYTHING, Scope, Send, Stop, started_anyway

SECOND = timedelta(seconds=1)
STOP = Stop(
    organization_id="o", scope=Scope(social_account_id="a"), what="PauseQueue", asked=START - SECOND, answered=START
)
JOB = {"id": "job", "organization_id": "o", "social_account_id": "a", "brand_id": "bakery"}


def found(stop: Stop, seconds: float, *, is_new: bool = False) -> Sequence[str]:
    time = START + seconds * SECOND
    send = Send(job=JOB, provider="sandbox", key="job-1", what="went out", time=time, is_new=is_new)
    return list(started_anyway([stop], [send]))


@pytest.mark.parametrize(
    "scope",
    [
        Scope(social_account_id="a"),
        Scope(brand_id="bakery"),
        Scope(provider="sandbox"),
        Scope(social_account_id="a", post_job_id="job"),
        EVERYTHING,
    ],
)
def test_a_post_that_goes_out_after_the_answer_is_found(scope: Scope) -> None:
    assert found(replace(STOP, scope=scope), 1.5) == ["job job went out 1.500 s after PauseQueue"]


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        pytest.param(STOP, -0.1, id="before the answer"),
        pytest.param(replace(STOP, until=START + SECOND), 1.1, id="after the resumption"),
        pytest.param(replace(STOP, in_flight=frozenset({"job"})), 0.1, id="named by the answer"),
        pytest.param(replace(STOP, scope=Scope(social_account_id="b")), 0.1, id="another account"),
        pytest.param(replace(STOP, scope=Scope(brand_id="dairy")), 0.1, id="another brand"),
        pytest.param(replace(STOP, scope=Scope(provider="other")), 0.1, id="another provider"),
        pytest.param(replace(STOP, scope=Scope(post_job_id="other")), 0.1, id="another post"),
        pytest.param(replace(STOP, scope=EVERYTHING, organization_id="p"), 0.1, id="another organization"),
    ],
)
def test_other_posts_may_go_out(stop: Stop, seconds: float) -> None:
    assert found(stop, seconds) == []


def test_an_attempt_that_begins_later_is_found_even_if_its_job_is_named() -> None:
    assert found(replace(STOP, in_flight=frozenset({"job"})), 0.1, is_new=True)


def a_history(acknowledged: Acknowledged) -> History:
    """Makes a history of a post that went out a second after START."""
    effect = {"id": "sp-1", "time": (START + SECOND).isoformat(), "idempotency_key": "job-1", "text": "Text"}
    job: dict[str, Any] = {
        **JOB,
        "draft_id": "d",
        "channel": "facebook",
        "destination": "",
        "state": "PUBLISHED",
        "run": 1,
        "slot_id": "s",
        "schedule_time": START,
        "next_action_time": None,
        "lease_end": None,
        "external_id": "sp-1",
        "max_attempts": 5,
    }
    attempt = {"post_job_id": "job", "run": 1, "idempotency_key": "job-1", "start_time": START}
    return History(now=START + 10 * SECOND, acknowledged=acknowledged, effects=[effect], jobs=[job], attempts=[attempt])


@pytest.mark.parametrize(
    ("promise", "acknowledged"),
    [
        ("G19", Acknowledged(pauses=[STOP])),
        ("G19", Acknowledged(holds=[replace(STOP, scope=EVERYTHING)])),
        ("G19", Acknowledged(disconnections=[STOP])),
        ("G6", Acknowledged(removals=[STOP])),
        ("calls", Acknowledged(refusals=[STOP])),
    ],
)
def test_each_kind_of_stop_is_a_promise(promise: str, acknowledged: Acknowledged) -> None:
    found = violations(a_history(acknowledged))
    assert [text.split(":")[0] for text in found if "PauseQueue" in text] == [promise]
