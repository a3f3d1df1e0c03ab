"""Attempts end: so many requests and no more, and no doubtful run ends as unsent."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]

QUICK = {"retry_cap": timedelta(milliseconds=300), "unknown_deadline": timedelta(seconds=2)}


async def requests(rig: Any, operation: str = "post") -> int:
    return len(
        [each for each in rig.sandbox.ledger() if (each["kind"], each.get("operation")) == ("request", operation)]
    )


async def test_a_provider_that_is_broken_is_asked_no_more_often_than_the_command_allows(start: Start) -> None:
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


async def test_a_refused_resend_does_not_fail_a_post_whose_first_request_is_out(start: Start) -> None:
    async with start(**QUICK | {"unknown_deadline": timedelta(seconds=20)}) as rig:
        await rig.connect()
        await rig.sandbox.mode("ext-page", "lookup")
        # The effect comes after the look that proves it absent, and the resend is refused meanwhile.
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
        # The one that is out is the first, whose fate was unknown.
        assert [attempt.state for attempt in await rig.attempts(job)] == ["ACCEPTED", "REJECTED"]


def _refused(rig: Any) -> Callable[[], Awaitable[bool]]:
    async def refused() -> bool:
        job = await rig.job("d1")
        return bool((job.state, job.state_reason) == ("UNKNOWN", "RESEND_REFUSED"))

    return refused


async def test_an_outcome_that_nobody_can_look_up_is_left_to_a_person(start: Start) -> None:
    async with start(**QUICK) as rig:
        await rig.connect()
        await rig.sandbox.mode("ext-page", "blind")
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("NEEDS_ATTENTION", "d1", within=15)
        assert (job.error_reason, job.in_doubt) == ("CONNECTION_LOST", True)
        assert "no proof was found in time" in job.error_message
        assert len(rig.sandbox.effects()) == 1


async def test_an_unknown_outcome_whose_credentials_do_not_open_is_left_to_a_person(start: Start) -> None:
    async with start(**QUICK) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1}, {"fault": "status", "operation": "lookup"})
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("UNKNOWN", "d1")
        async with rig.database.transaction() as tx:
            await tx.connection.execute(text("update social_account set credentials = '\\x01'"))
        job = await rig.in_state("NEEDS_ATTENTION", "d1", within=15)
        assert "unknown form" in job.error_message
        (account,) = await rig.rows("select state from social_account")
        assert account.state == "CONNECTED"


async def test_a_refused_look_disconnects_the_account(start: Start) -> None:
    async with start(**QUICK | {"unknown_deadline": timedelta(seconds=60)}) as rig:
        await rig.connect()
        await rig.sandbox.faults(
            {"fault": "effect_then_reset", "count": 1},
            {"fault": "status", "status": 401, "operation": "lookup", "count": 1},
        )
        await rig.save_draft("d1")
        await rig.go("d1")
        await eventually(_disconnected(rig), within=10)
        await rig.connect()
        await rig.in_state("PUBLISHED", "d1", within=15)
        assert len(rig.sandbox.effects()) == 1


def _disconnected(rig: Any) -> Callable[[], Awaitable[bool]]:
    async def gone() -> bool:
        (account,) = await rig.rows("select state, state_reason from social_account")
        return bool((account.state, account.state_reason) == ("DISCONNECTED", "CREDENTIALS_REFUSED"))

    return gone


async def test_the_publish_time_of_a_found_post_is_the_providers(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        (effect,) = rig.sandbox.effects()
        assert job.publish_time.isoformat() == effect["time"]


@pytest.mark.parametrize(("said", "ends"), [("hello", "PUBLISHED"), ("other", "NEEDS_ATTENTION")])
async def test_a_post_in_doubt_is_sent_again_with_the_same_text_only(start: Start, said: str, ends: str) -> None:
    """The targets were changed, or an edit was given up: revision 1 is forbidden, and its text is not."""
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
