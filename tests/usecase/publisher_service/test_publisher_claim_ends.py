"""How claims end that are not followed by a request: no commit, no time left, no attempt left, no bytes left."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.application.drop_kept_content import DropKeptContent
from servicekit.pg.database import Database, Transaction
from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]

_OPENED = text("select 1 from attempt where state = 'SENDING' and xmin = pg_current_xact_id()::xid")


class LosesOneAnswer(Database):
    """The first COMMIT that opens an attempt goes through, and its answer is lost."""

    lost = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with super().transaction() as tx:
            yield tx
            opened = (await tx.connection.execute(_OPENED)).first() is not None
        if opened and not self.lost:
            LosesOneAnswer.lost += 1
            raise ConnectionResetError("the answer to COMMIT was lost")


async def test_a_claim_whose_commit_failed_is_taken_back(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_posts_that_wait_for_a_sender_at_stop_go_out_once_after_the_restart(start: Start) -> None:
    names = [f"d{number}" for number in range(4)]
    async with start(senders=1, request_timeout=timedelta(seconds=6)) as rig:
        for name in names:
            await rig.connect(f"page-{name}")
            await rig.save_draft(name, f"page-{name}", said=name)
        await rig.sandbox.faults({"fault": "slow", "seconds": 2, "count": 1})
        due = rig.clock.now()
        for name in names:
            await rig.go(name, account=f"page-{name}", due=due)
        for name in names:
            await rig.in_state("SENDING", name, f"page-{name}")
    async with start() as rig:
        for name in names:
            job = await rig.in_state("PUBLISHED", name, f"page-{name}")
            assert job.attempts == 1
        assert sorted(effect["text"] for effect in rig.sandbox.effects()) == names
        attempts = await rig.rows("select state, error_reason from attempt order by state, fence")
        assert [tuple(each) for each in attempts] == [("ACCEPTED", "")] * 4 + [("NOT_SENT", "STOPPING")] * 3


@pytest.mark.parametrize(("in_doubt", "ends"), [(False, "FAILED"), (True, "NEEDS_ATTENTION")])
async def test_a_run_without_an_attempt_left_is_not_sent(start: Start, in_doubt: bool, ends: str) -> None:
    async with start() as rig:
        slot = await ahead(rig)
        await rig.write("update post_job set attempts = 5, in_doubt = :in_doubt", in_doubt=in_doubt)
        await rig.command("d1", slot, rig.clock.now())
        job = await rig.in_state(ends, "d1")
        assert job.error_reason == ("OUTCOME_UNKNOWN" if in_doubt else "EXHAUSTED")
        assert (await rig.kinds("d1"))[-1] == ends
        assert (await rig.attempts(job), rig.sandbox.effects()) == ([], [])


async def test_a_run_in_doubt_whose_bytes_are_lost_sends_no_others(start: Start) -> None:
    async with start(unknown_deadline=timedelta(seconds=1)) as rig:
        slot = await ahead(rig, revision=2)
        await rig.write("update post_job set attempts = 1, in_doubt = true, content_revision = 1")
        await rig.command("d1", slot, rig.clock.now(), revision=2)
        job = await rig.in_state("NEEDS_ATTENTION", "d1")
        assert (await rig.kinds("d1"))[-2:] == ["UNCERTAIN", "NEEDS_ATTENTION"]
        uncertain = (await rig.told("d1"))[-2].post_job
        assert uncertain.state_reason == "CONTENT_LOST"
        assert (await rig.attempts(job), rig.sandbox.effects()) == ([], [])


async def test_kept_bytes_are_dropped_when_the_run_has_ended_and_not_before(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=60), retry_first=timedelta(seconds=60)) as rig:
        drop = DropKeptContent(rig.database)
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("UNKNOWN", "d1")
        assert (await drop(), await kept(rig)) == (False, 1)

        await rig.write("update post_job set next_action_time = now()")
        await rig.in_state("WAITING", "d1")
        assert (await drop(), await kept(rig)) == (False, 1)

        await rig.save_draft("d1", said="second", revision=2)
        await eventually(lambda: newest(rig, 2))
        await rig.write("update post_job set next_action_time = now() - interval '1 minute'")
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["first"]
        assert (await drop(), await kept(rig)) == (False, 0)


async def ahead(rig: Any, *, revision: int = 1) -> str:
    """A post that may go out, with its slot far ahead."""
    await rig.connect()
    await rig.save_draft("d1", revision=revision)
    slot: str = await rig.schedule("d1", rig.clock.now() + timedelta(days=30))
    await rig.in_state("SCHEDULED", "d1")
    return slot


async def kept(rig: Any) -> int:
    return len(await rig.rows("select 1 from kept_content"))


async def newest(rig: Any, revision: int) -> bool:
    (content,) = await rig.rows("select revision from content")
    return bool(content.revision == revision)
