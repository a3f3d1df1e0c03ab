"""Resends of posts that may be out: with the same content, and a limited number of times."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

QUICK = {"retry_cap": timedelta(milliseconds=300), "unknown_deadline": timedelta(seconds=2)}


async def requests(rig: Rig, operation: str = "post") -> int:
    return len(
        [each for each in rig.sandbox.ledger() if (each["kind"], each.get("operation")) == ("request", operation)]
    )


async def test_a_failing_provider_gets_no_more_requests_than_max_attempts(start: Start) -> None:
    async with start(**QUICK) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 503})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("NEEDS_ATTENTION", "d1", within=30)
        assert await requests(rig) == 5
        assert [attempt.state for attempt in await rig.attempts(job)] == ["ABSENT"] * 4 + ["UNKNOWN"]
        assert "attempts 5 of 5" in job.error_message
        assert (await rig.kinds("d1"))[-1] == "NEEDS_ATTENTION"


async def test_a_refused_resend_does_not_fail_a_post_that_is_out(start: Start) -> None:
    async with start(**QUICK | {"unknown_deadline": timedelta(seconds=20)}) as rig:
        await rig.connect()
        await rig.sandbox.mode("ext-page", "lookup")
        # The post appears after the look-up that proved it absent; the resend in between is refused.
        await rig.sandbox.faults(
            {"fault": "late_effect", "seconds": 3.0, "answer": "reset", "count": 1},
            {"fault": "status", "status": 422},
        )
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("UNKNOWN", "d1")
        await eventually(_refused(rig), within=10)
        job = await rig.in_state("PUBLISHED", "d1", within=15)
        (effect,) = rig.sandbox.effects()
        assert job.external_id == effect["id"]
        # The first attempt, whose outcome was unknown, is the one that is out.
        assert [attempt.state for attempt in await rig.attempts(job)] == ["ACCEPTED", "REJECTED"]


@pytest.mark.parametrize(("said", "ends"), [("hello", "PUBLISHED"), ("other", "NEEDS_ATTENTION")])
async def test_a_post_in_doubt_is_sent_again_only_with_the_same_text(start: Start, said: str, ends: str) -> None:
    """The targets changed, or an edit was given up: revision 1 is withdrawn, but its text is not."""
    async with start(**QUICK | {"unknown_settle": timedelta(seconds=1.5)}) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("UNKNOWN", "d1")
        assert list((await rig.withdraw("d1", below=2)).in_flight_post_job_ids) == [job.id]
        await rig.save_draft("d1", said=said, revision=2)
        job = await rig.in_state(ends, "d1", within=20)
        assert [effect["text"] for effect in rig.sandbox.effects()] == (["hello"] if ends == "PUBLISHED" else [])
        assert [attempt.content_revision for attempt in await rig.attempts(job)][1:] == [2] * (ends == "PUBLISHED")


async def test_a_resend_carries_the_text_that_may_be_out_not_a_newer_one(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "hang_without_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("SENDING", "d1")
        await rig.save_draft("d1", said="second", revision=2)
        job = await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["first"]
        attempts = await rig.attempts(job)
        assert [attempt.state for attempt in attempts] == ["ABSENT", "ACCEPTED"]
        assert len({(attempt.content_digest, attempt.idempotency_key) for attempt in attempts}) == 1
        assert job.content_revision == 1


def _refused(rig: Rig) -> Callable[[], Awaitable[bool]]:
    async def refused() -> bool:
        job = await rig.job("d1")
        return bool((job.state, job.state_reason) == ("UNKNOWN", "RESEND_REFUSED"))

    return refused
