"""Settlements that are late, repeated, or of attempts that were never sent."""

import logging

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.settle import SettleRow, record_settlements
from publisher_service.application import post_log
from publisher_service.domain.outcome import (
    AuthRefused,
    NotBegun,
    NotSent,
    Outcome,
    Rejected,
)
from publisher_service.domain.settlement import settle
from tests.usecase.publisher_service.replica import (
    AT_ONCE,
    DUE,
    Replica,
    a_command,
    a_second_attempt,
    a_sent,
    claims_in,
    outcome_lines,
)


async def test_a_repeated_settlement_changes_nothing(replica: Replica) -> None:
    """The first commit succeeded, but its answer was lost."""
    names = await replica.posts(3)
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    batch = [
        a_sent(claimed[0]),
        a_sent(claimed[1], Rejected(reason="TOO_LONG", message="m")),
        a_sent(claimed[2], AuthRefused(message="m")),
    ]
    await replica.settle(batch)
    everything = "select * from post_job order by id", "select * from attempt order by post_job_id"
    before = [await replica.rows(statement) for statement in everything]
    events = await replica.rows("select count(*) as count from outbox")
    await replica.settle(batch)
    assert [await replica.rows(statement) for statement in everything] == before
    assert await replica.rows("select count(*) as count from outbox") == events


async def test_a_late_answer_that_proves_nothing_leaves_the_job_unknown(replica: Replica, hasty: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    await replica.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message=""))])
    assert await replica.states() == {"UNKNOWN": 1}


@pytest.mark.parametrize(
    ("outcome", "attempts"),
    [(NotBegun(reason="LEASE_TOO_SHORT", message=""), 0), (NotSent(reason="CONNECTION_REFUSED", message=""), 1)],
    ids=lambda value: type(value).__name__,
)
async def test_an_attempt_that_was_not_sent_leaves_no_doubt_even_if_late(
    replica: Replica, hasty: Replica, outcome: Outcome, attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The process was suspended for longer than its lease."""
    caplog.set_level(logging.INFO, logger=post_log.__name__)
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    await hasty.settle([a_sent(claimed, outcome)])
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.attempts, job.in_doubt) == ("WAITING", "RETRY", attempts, False)
    (attempt,) = await replica.rows("select * from attempt")
    assert attempt.state == "NOT_SENT"
    before = await replica.rows("select * from post_job")
    await hasty.settle([a_sent(claimed, outcome)])
    assert await replica.rows("select * from post_job") == before
    assert outcome_lines(caplog) == ["post unknown", "post waiting"]


async def test_an_unsent_attempt_does_not_clear_the_doubt_of_another(replica: Replica, hasty: Replica) -> None:
    first, second = await a_second_attempt(replica, hasty)
    await hasty.settle([a_sent(first, NotBegun(reason="LEASE_TOO_SHORT", message=""))])
    assert await replica.states() == {"SENDING": 1}
    async with replica.database.transaction() as tx:
        await tx.connection.execute(text("update post_job set next_action_time = now()"))
    await replica.recover()
    await replica.settle([a_sent(second, NotBegun(reason="LEASE_TOO_SHORT", message=""))])
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.attempts, job.in_doubt) == ("WAITING", 1, True)


async def test_a_claim_is_open_until_its_last_job_is_settled(replica: Replica) -> None:
    names = await replica.posts(3)
    first, *others = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(first)])
    # The answer of a job that is settled counts no second time.
    await replica.settle([a_sent(first)])
    (open_claim,) = await replica.rows("select unsettled, post_job_ids from open_claim")
    assert open_claim.unsettled == 2
    assert set(open_claim.post_job_ids) == {each.job.id for each in (first, *others)}
    await replica.settle([a_sent(each) for each in others])
    assert await replica.rows("select 1 from open_claim") == []


async def test_an_accepted_attempt_writes_no_index_entry(replica: Replica) -> None:
    names = await replica.posts(3)
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    rows = [
        SettleRow(
            settlement=settle(each.job, a_sent(each).outcome, policy=AT_ONCE, now=DUE, draw=0.5),
            activity_id=each.job.id,
            outcome="SUCCESS",
        )
        for each in claimed
    ]
    hot = text("select pg_stat_get_xact_tuples_hot_updated(cast('attempt' as regclass))")
    async with replica.database.transaction() as tx:
        assert len((await record_settlements(tx, rows, now=DUE)).activity_ids) == 3
        assert (await tx.connection.execute(hot)).scalar_one() == 3
