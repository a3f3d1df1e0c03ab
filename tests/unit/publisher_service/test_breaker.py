"""The breaker of a lane: after failures in a row, one probe per back-off, until the provider answers."""

from datetime import timedelta

import pytest

from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.smtp_replies import Reply, Step, classify_reply_at
from publisher_service.adapters.providers.webhook import classify_webhook
from publisher_service.domain.outcome import Accepted, Ambiguous, NotBegun, NotSent, Outcome, RateLimited
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of
from publisher_service.engine.breaker import Breaker

GONE = NotSent(reason="CONNECTION_REFUSED", message="", is_unreachable=True)
# Of one tenant: its media, its webhook, its mail server, or the state of its account.
OWN_FAULTS = [
    NotSent(reason="MEDIA_UNAVAILABLE", message=""),
    outcome_of(classify_webhook(Answer(404, {}, b""))),
    outcome_of(classify_reply_at(Step.RECIPIENT, Reply(code=450, text="4.2.0 greylisted"))),
    outcome_of(ProviderError(kind=ErrorClass.RETRY_LATER, reason="no_client_session", message="")),
]
ANSWER = Accepted(external_id="x", external_url="")


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def opened(clock: Clock) -> Breaker:
    breaker = Breaker("sandbox", clock, draw=lambda: 1.0)
    for _ in range(5):
        assert breaker.room is None
        breaker.note(GONE, is_probe=False)
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker("sandbox", Clock())
    outcomes: list[Outcome] = [GONE, GONE, GONE, GONE, ANSWER]
    for outcome in outcomes * 3:
        assert not breaker.note(outcome, is_probe=False)
    assert breaker.room is None
    assert not breaker.is_open


@pytest.mark.parametrize("fault", OWN_FAULTS)
def test_the_faults_of_one_tenant_close_no_provider_for_the_others(fault: Outcome) -> None:
    breaker = Breaker("sandbox", Clock())
    for _ in range(100):
        breaker.note(fault, is_probe=False)
    assert breaker.room is None
    assert not breaker.is_open


@pytest.mark.parametrize("fault", OWN_FAULTS)
def test_a_probe_that_fails_by_its_tenants_fault_is_repeated_at_once(fault: Outcome) -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.time += 1
    breaker.begin_probe()
    breaker.note(fault, is_probe=False)
    assert breaker.room == 0, "the probe is still out"
    assert not breaker.note(fault, is_probe=True)
    assert breaker.room == 1
    assert breaker.is_open


def test_one_probe_follows_each_back_off_and_the_back_off_doubles() -> None:
    clock = Clock()
    breaker = opened(clock)
    for wait in (1, 2, 4, 8, 16, 30, 30):
        assert breaker.room == 0
        clock.time += wait - 0.01
        assert breaker.room == 0
        clock.time += 0.01
        assert breaker.room == 1
        breaker.begin_probe()
        assert breaker.room == 0
        breaker.note(GONE, is_probe=True)


def test_requests_that_were_out_together_count_once() -> None:
    clock = Clock()
    breaker = opened(clock)
    for _ in range(50):
        breaker.note(GONE, is_probe=False)
    clock.time += 1
    assert breaker.room == 1


@pytest.mark.parametrize("answer", [ANSWER, RateLimited(message="", retry_after=timedelta(seconds=1))])
def test_any_answer_ends_it(answer: Outcome) -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.time += 1
    breaker.begin_probe()
    assert breaker.note(answer, is_probe=True)
    assert breaker.room is None
    assert not breaker.note(answer, is_probe=False)


@pytest.mark.parametrize("outcome", [NotBegun(reason="x", message=""), Ambiguous(reason="x", message="")])
def test_a_probe_that_says_nothing_is_repeated(outcome: Outcome) -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.time += 1
    breaker.begin_probe()
    assert not breaker.note(outcome, is_probe=True)
    assert breaker.room == 0
    clock.time += 2
    assert breaker.room == 1


def test_a_used_up_quota_admits_nothing_for_its_time() -> None:
    clock = Clock()
    breaker = Breaker("sandbox", clock)
    breaker.close_for(10)
    assert breaker.room == 0
    assert breaker.is_closed
    clock.time += 10
    assert breaker.room is None
