"""A claim whose COMMIT may have failed sends nothing, and is given back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from publisher_service.application.disown_claims import FailedClaim
from servicekit.pg.database import Database, Transaction
from tests.usecase.publisher_service.replica import Replica, a_second_attempt
from tests.usecase.publisher_service.rig import Start

_OPENED = text("select 1 from attempt where state = 'SENDING' and xmin = pg_current_xact_id()::xid")


class LosesOneAnswer(Database):
    """A database that commits the first claim and then loses the answer."""

    lost = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with super().transaction() as tx:
            yield tx
            opened = (await tx.connection.execute(_OPENED)).first() is not None
        if opened and not self.lost:
            LosesOneAnswer.lost += 1
            raise ConnectionResetError("the answer to COMMIT was lost")


async def test_a_claim_whose_commit_failed_is_given_back_and_sent_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servicekit.backbone.Database", LosesOneAnswer)
    monkeypatch.setattr(LosesOneAnswer, "lost", 0)
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        assert LosesOneAnswer.lost == 1
        assert (job.attempts, job.in_doubt) == (1, False)
        taken_back, sent = await rig.attempts(job)
        assert (taken_back.state, taken_back.error_reason) == ("NOT_SENT", "CLAIM_FAILED")
        assert (sent.state, sent.number, sent.idempotency_key) == ("ACCEPTED", 1, taken_back.idempotency_key)
        assert len(rig.sandbox.effects()) == 1
        assert "UNCERTAIN" not in await rig.kinds("d1")
        assert await rig.rows("select 1 from account_gate where open_job_id is not null") == []


async def test_a_run_in_doubt_stays_so_when_a_later_claim_fails(replica: Replica, hasty: Replica) -> None:
    _, second = await a_second_attempt(replica, hasty)
    (attempt,) = await replica.rows("select sender from attempt where fence = 2")
    (job,) = await replica.disown(FailedClaim(sender=attempt.sender, jobs=[second.job.key]))
    assert (job.state, job.in_doubt, job.attempts) == ("WAITING", True, 1)
