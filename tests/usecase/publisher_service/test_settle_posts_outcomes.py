"""Outcomes of requests, and the state in which each leaves its post."""

from datetime import timedelta
from typing import Any

from sqlalchemy import text

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Start


async def test_a_refused_post_fails_with_what_the_provider_said(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="x" * 5001)
        await rig.go("d1")
        job = await rig.in_state("FAILED", "d1")
        assert job.error_reason
        assert job.error_message
        assert len(await rig.attempts(job)) == 1
        assert rig.sandbox.effects() == []


async def test_a_rate_limited_post_waits_as_long_as_asked_at_no_attempt(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 429, "retry_after": 1, "count": 2})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        assert job.attempts == 1
        assert [attempt.state for attempt in await rig.attempts(job)] == ["NOT_SENT", "NOT_SENT", "ACCEPTED"]


async def test_a_post_to_an_unreachable_provider_is_retried_and_does_not_fail(start: Start, free_port: Any) -> None:
    async with start() as rig:
        await rig.connect()
    async with start(sandbox_url=f"http://127.0.0.1:{free_port()}") as rig:
        await rig.save_draft("d1")
        await rig.go("d1")

        async def is_retried() -> bool:
            job = await rig.job("d1")
            attempts = await rig.attempts(job)
            assert len(attempts) > 5
            assert {attempt.state for attempt in attempts} <= {"NOT_SENT", "SENDING"}
            return bool((job.error_reason, job.state) == ("CONNECTION_REFUSED", "WAITING") and job.attempts == 2)

        assert await eventually(is_retried, within=20)


async def test_an_answer_that_cannot_be_stored_leaves_its_post_unknown(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=60)) as rig:
        for number in range(4):
            await rig.connect(f"page-{number}")
        async with rig.database.transaction() as tx:
            await tx.connection.execute(
                text("alter table post_job add constraint odd check (state <> 'PUBLISHED' or draft_id <> 'd2')")
            )
        due = rig.clock.now() + timedelta(seconds=1)
        for number in range(4):
            await rig.save_draft(f"d{number}", f"page-{number}")
            await rig.go(f"d{number}", account=f"page-{number}", due=due)
        for number in (0, 1, 3):
            await rig.in_state("PUBLISHED", f"d{number}", f"page-{number}")
        job = await rig.in_state("UNKNOWN", "d2", "page-2")
        assert (job.error_reason, job.in_doubt) == ("NOT_RECORDED", True)


async def test_an_answer_with_a_nul_character_is_looked_up(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        body = '{"id": "sp-\\u0000", "url": "http://x"}'
        await rig.sandbox.faults({"fault": "garbage", "effect": True, "body": body})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        (effect,) = rig.sandbox.effects()
        assert job.external_id == effect["id"]
