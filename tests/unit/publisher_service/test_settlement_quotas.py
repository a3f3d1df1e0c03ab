"""Settlements and quotas: an answer pauses the account, closes the channel or the provider, each on its own level."""

from datetime import timedelta

import pytest

from publisher_service.domain.outcome import Accepted, Ambiguous, Level, Outcome, Quota, RateLimited
from publisher_service.domain.post_job import JobState, Reason
from publisher_service.domain.settlement import Settlement, settle_within_budget
from tests.unit.publisher_service.post_jobs import NOW, POLICY, sending

MINUTE = timedelta(minutes=1)


def settled(outcome: Outcome) -> Settlement:
    return settle_within_budget(sending(), outcome, failures=0, policy=POLICY, now=NOW, draw=0.5)


def ends(settlement: Settlement) -> dict[Level, timedelta]:
    """Returns for how long each level takes nothing."""
    found = {
        Level.ACCOUNT: settlement.pause_until,
        Level.CHANNEL: settlement.channel_closed_until,
        Level.APPLICATION: settlement.closed_until,
    }
    return {level: until - NOW for level, until in found.items() if until is not None}


def left(level: Level, remaining: int = 0, after: timedelta = MINUTE) -> Quota:
    return Quota(level=level, remaining=remaining, reset_after=after)


@pytest.mark.parametrize("level", Level)
def test_a_quota_that_is_used_up_closes_its_own_level(level: Level) -> None:
    assert ends(settled(Accepted(external_id="x", external_url="", quotas=[left(level)]))) == {level: MINUTE}
    assert ends(settled(Accepted(external_id="x", external_url="", quotas=[left(level, remaining=1)]))) == {}


def test_a_quota_counts_even_if_nobody_knows_the_outcome() -> None:
    unknown = settled(Ambiguous(reason="META_4", message="", quotas=[left(Level.APPLICATION)]))
    assert (unknown.job.state, ends(unknown)) == (JobState.UNKNOWN, {Level.APPLICATION: MINUTE})


def test_each_of_several_quotas_counts() -> None:
    quotas = [left(level, after=MINUTE * number) for number, level in enumerate(Level, 1)]
    expected = {level: MINUTE * number for number, level in enumerate(Level, 1)}
    assert ends(settled(Accepted(external_id="x", external_url="", quotas=quotas))) == expected


def test_a_429_of_a_channel_has_its_post_wait_and_no_other_channel() -> None:
    settlement = settled(RateLimited(message="later", retry_after=MINUTE, level=Level.CHANNEL))
    assert ends(settlement) == {Level.CHANNEL: MINUTE}
    job = settlement.job
    assert (job.state, job.state_reason, job.next_action_time) == (JobState.WAITING, Reason.RATE_LIMITED, NOW + MINUTE)


@pytest.mark.parametrize("reset", [MINUTE / 2, 2 * MINUTE])
def test_the_later_of_a_429_and_its_quota_counts(reset: timedelta) -> None:
    outcome = RateLimited(
        message="later", retry_after=MINUTE, level=Level.CHANNEL, quotas=[left(Level.CHANNEL, after=reset)]
    )
    assert ends(settled(outcome)) == {Level.CHANNEL: max(reset, MINUTE)}
