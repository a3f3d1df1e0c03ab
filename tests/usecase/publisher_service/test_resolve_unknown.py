"""Posts whose outcome is unknown are looked up, and sent again only when they are proven absent."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

QUICK = {"retry_cap": timedelta(milliseconds=300), "unknown_deadline": timedelta(seconds=2)}


@pytest.mark.parametrize("fault", ["effect_then_reset", "effect_then_hang"])
async def test_a_post_whose_answer_is_lost_is_found_and_not_sent_again(start: Start, fault: str) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": fault, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        (effect,) = rig.sandbox.effects()
        assert job.external_id == effect["id"]
        assert len(await rig.attempts(job)) == 1
        assert "UNCERTAIN" in await rig.kinds("d1")


@pytest.mark.parametrize("fault", ["reset_before_effect", "hang_without_effect", "garbage"])
async def test_a_post_that_is_proven_absent_is_sent_again(start: Start, fault: str) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": fault, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        assert [attempt.state for attempt in await rig.attempts(job)] == ["ABSENT", "ACCEPTED"]
        assert len(rig.sandbox.effects()) == 1


async def test_a_look_up_that_fails_proves_nothing(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults(
            {"fault": "effect_then_reset", "count": 1},
            {"fault": "status", "operation": "lookup", "status": 503, "count": 2},
        )
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        assert len(rig.sandbox.effects()) == 1


async def test_an_outcome_that_cannot_be_looked_up_is_left_to_a_person(start: Start) -> None:
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


async def test_a_look_up_without_readable_credentials_is_left_to_a_person(start: Start) -> None:
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


async def test_a_look_up_with_refused_credentials_disconnects_the_account(start: Start) -> None:
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


async def test_a_found_post_has_the_providers_publish_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        (effect,) = rig.sandbox.effects()
        assert job.publish_time.isoformat() == effect["time"]


def _disconnected(rig: Rig) -> Callable[[], Awaitable[bool]]:
    async def gone() -> bool:
        (account,) = await rig.rows("select state, state_reason from social_account")
        return bool((account.state, account.state_reason) == ("DISCONNECTED", "CREDENTIALS_REFUSED"))

    return gone
