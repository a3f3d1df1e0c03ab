"""Answers to withdrawals, and the text that goes out afterwards."""

from datetime import timedelta

import grpc
import pytest

from postflow.publisher.v1.publisher_service_pb2 import WITHDRAW_OUTCOME_PUBLISHED
from servicekit.rpc import fault_from_error
from tests.usecase.publisher_service.rig import Start


async def test_the_text_after_a_withdrawn_one_is_sent_instead(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="old")
        due = rig.clock.now() + timedelta(seconds=1)
        await rig.go("d1", due=due)
        await rig.in_state("SCHEDULED", "d1")
        answer = await rig.withdraw("d1", below=2)
        assert list(answer.in_flight_post_job_ids) == []
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "WITHDRAWN"
        await rig.save_draft("d1", said="new", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["new"]


async def test_a_revision_that_was_not_announced_cannot_be_withdrawn(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        for below in (2, 2**63 - 1):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rig.withdraw("d1", below=below)
            assert fault_from_error(refused.value).reason == "REVISION_NOT_KNOWN"
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")


async def test_a_withdrawal_that_is_too_late_does_not_block_other_targets(start: Start) -> None:
    async with start() as rig:
        await rig.connect("page")
        await rig.connect("other")
        await rig.save_draft("d1", "page", "other")
        await rig.go("d1")
        out = await rig.in_state("PUBLISHED", "d1")
        answer = await rig.withdraw("d1", below=2)
        assert answer.outcome == WITHDRAW_OUTCOME_PUBLISHED
        assert [(each.post_job_id, each.external_url) for each in answer.published] == [(out.id, out.external_url)]
        await rig.go("d1", account="other")
        await rig.in_state("PUBLISHED", "d1", "other")


async def test_a_withdrawal_that_is_too_late_names_the_attempt_in_flight(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=5)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 1, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("SENDING", "d1")
        answer = await rig.withdraw("d1", below=2)
        assert list(answer.in_flight_post_job_ids) == [job.id]
        await rig.in_state("PUBLISHED", "d1")


async def test_a_withdrawn_text_in_doubt_ends_its_run_without_a_newer_text(start: Start) -> None:
    async with start(retry_first=timedelta(seconds=3)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("WAITING", "d1")
        await rig.withdraw("d1", below=2)
        await rig.save_draft("d1", said="second", revision=2)
        job = await rig.in_state("NEEDS_ATTENTION", "d1", within=20)
        assert "withdrawn" in job.error_message
        assert rig.sandbox.effects() == []
