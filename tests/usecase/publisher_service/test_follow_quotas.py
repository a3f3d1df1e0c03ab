"""Quotas of the application close a provider in every process; an answer after an outage ends pauses."""

from datetime import timedelta

import pytest

from publisher_service.application.follow_quotas import FollowQuotas
from publisher_service.domain.outcome import Accepted, Level, NotSent, Outcome, Quota, RateLimited
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in

MINUTE = timedelta(minutes=1)
GONE = NotSent(reason="CONNECTION_REFUSED", message="")


def following(replica: Replica, closed: dict[str, float]) -> FollowQuotas:
    return FollowQuotas(database=replica.database, clock=replica.clock, close=closed.__setitem__, wake=lambda: None)


async def settle(replica: Replica, outcome: Outcome, draft: str = "d0") -> None:
    (claimed,) = claims_in(await replica.claim([a_command(draft)]))
    await replica.settle([a_sent(claimed, outcome)])


async def due_again(replica: Replica) -> None:
    await replica.write("update account_gate set resume_time = null")
    await replica.write("update post_job set next_action_time = now() - interval '1 hour' where state = 'WAITING'")


def with_quota(level: Level, remaining: int = 0) -> Accepted:
    quota = Quota(level=level, remaining=remaining, reset_after=MINUTE)
    return Accepted(external_id="x", external_url="", quotas=(quota,))


@pytest.mark.parametrize(
    "outcome",
    [with_quota(Level.APPLICATION), RateLimited(message="", retry_after=MINUTE, level=Level.APPLICATION)],
    ids=["nothing left", "429"],
)
async def test_the_quota_of_the_application_closes_the_provider_in_every_process(
    replica: Replica, another: Replica, outcome: Outcome
) -> None:
    await replica.posts(1)
    await settle(replica, outcome)
    for each in (replica, another):
        closed: dict[str, float] = {}
        await following(each, closed)()
        assert closed.keys() == {"sandbox"}
        assert 50 < closed["sandbox"] <= 60


@pytest.mark.parametrize(
    ("outcome", "pauses"),
    [
        (with_quota(Level.ACCOUNT), True),
        (with_quota(Level.ACCOUNT, remaining=1), False),
        (with_quota(Level.CHANNEL), False),
        (RateLimited(message="", retry_after=MINUTE), True),
        (RateLimited(message="", retry_after=MINUTE, level=Level.CHANNEL), False),
        (
            RateLimited(
                message="",
                retry_after=MINUTE,
                level=Level.CHANNEL,
                quotas=[Quota(level=Level.ACCOUNT, remaining=0, reset_after=MINUTE)],
            ),
            True,
        ),
    ],
    ids=[
        "account",
        "one left",
        "channel",
        "429",
        "429 of a channel",
        "429 of a channel, and the account has none left",
    ],
)
async def test_the_quota_of_an_account_has_it_pause(replica: Replica, outcome: Outcome, pauses: bool) -> None:
    await replica.posts(1)
    await settle(replica, outcome)
    closed: dict[str, float] = {}
    await following(replica, closed)()
    assert closed == {}
    (gate,) = await replica.rows("select resume_time > now() + interval '30 seconds' as pauses from account_gate")
    assert bool(gate.pauses) is pauses


async def test_an_answer_after_an_outage_ends_the_pauses_of_all_accounts(replica: Replica) -> None:
    await replica.posts(3)
    await replica.write(
        "update account_gate set failures = 5, lined = true, resume_time = now() + interval '1 hour',"
        " wake_time = now() + interval '1 hour' where social_account_id <> 'page-d2'"
    )
    follow = following(replica, {})
    follow.answers_again("sandbox")
    assert not await follow()
    rows = await replica.rows("select wake_time < now() + interval '5 seconds' as soon from account_gate")
    assert [row.soon for row in rows].count(True) == 2


async def test_failures_are_counted_and_an_answer_begins_again(replica: Replica) -> None:
    await replica.posts(1)
    spent = []
    for _ in range(5):
        await replica.write("update account_gate set resume_time = null")
        await replica.write(
            "update post_job set next_action_time = now() - interval '1 minute' where state = 'WAITING'"
        )
        await settle(replica, GONE)
        (row,) = await replica.rows("select attempts, state from post_job")
        spent.append((row.attempts, row.state))
    assert spent == [(1, "WAITING"), (2, "WAITING"), (2, "WAITING"), (2, "WAITING"), (2, "WAITING")]
    (gate,) = await replica.rows("select failures from account_gate")
    assert gate.failures == 5
    await due_again(replica)
    await settle(replica, Accepted(external_id="x", external_url=""))
    (gate,) = await replica.rows("select failures from account_gate")
    assert gate.failures == 0
