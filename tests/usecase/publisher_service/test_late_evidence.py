"""Proof of a post whose job has moved on is recorded; a contradiction is logged as CRITICAL."""

import pytest

from publisher_service.domain.outcome import (
    Accepted,
    Rejected,
)
from tests.usecase.publisher_service.replica import Replica, a_command, a_second_attempt, a_sent, claims_in


async def test_proof_that_arrives_while_unknown_publishes_the_post(replica: Replica, hasty: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 1}
    await replica.settle([a_sent(claimed)])
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.external_id, job.version) == ("PUBLISHED", f"out-{name}", claimed.job.version + 2)
    (attempt,) = await replica.rows("select * from attempt")
    assert (attempt.state, attempt.external_id) == ("ACCEPTED", f"out-{name}")


async def test_proof_from_an_earlier_attempt_abandons_the_later_one(replica: Replica, hasty: Replica) -> None:
    first, second = await a_second_attempt(replica, hasty)
    await replica.settle([a_sent(first)])
    assert await replica.states() == {"PUBLISHED": 1}
    attempts = await replica.rows("select state from attempt order by fence")
    assert [row.state for row in attempts] == ["ACCEPTED", "ABANDONED"]
    # The second request is still in flight: the account sends nothing else before its lease ends.
    (gate,) = await replica.rows("select resume_time from account_gate")
    assert gate.resume_time == second.job.next_action_time
    assert await replica.rows("select 1 from account_gate where open_job_id is not null") == []

    before = await replica.rows("select * from post_job")
    await replica.settle([a_sent(second)])
    await replica.settle([a_sent(second, Rejected(reason="DUPLICATE", message=""))])
    assert await replica.rows("select * from post_job") == before


async def test_two_conflicting_proofs_are_logged_as_critical(
    replica: Replica, hasty: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await a_second_attempt(replica, hasty)
    await replica.settle([a_sent(first)])
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]
    await replica.settle([a_sent(second, Accepted(external_id="another", external_url=""))])
    (record,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "is out twice: out-d0 and another" in record.getMessage()
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.external_id) == ("PUBLISHED", "out-d0")
