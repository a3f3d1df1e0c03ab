"""A post on its way through a whole publisher process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import grpc
import pytest

from postflow.publisher.v1.publisher_service_pb2 import WITHDRAW_OUTCOME_PUBLISHED
from servicekit.rpc import fault_from_error
from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]


async def test_an_approved_post_goes_out_once_at_its_time_and_leaves_evidence(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="good morning")
        due = rig.clock.now() + timedelta(seconds=1.5)
        await rig.go("d1", due=due)
        job = await rig.in_state("PUBLISHED", "d1")

        (effect,) = rig.sandbox.effects()
        assert effect["text"] == "good morning"
        assert job.external_id == effect["id"]
        assert job.evidence_kind == "PROVIDER_ID"
        assert job.next_action_time is None
        (attempt,) = await rig.attempts(job)
        assert (attempt.state, attempt.number, attempt.external_id) == ("ACCEPTED", 1, effect["id"])
        assert attempt.start_time <= job.publish_time
        assert job.publish_time >= due - timedelta(milliseconds=50)
        assert await rig.kinds("d1") == ["CREATED", "SCHEDULED", "SUCCEEDED"]
        assert [row.outcome for row in await rig.rows("select outcome from activity")] == ["SUCCESS"]
        assert await rig.rows("select 1 from account_gate where open_job_id is not null") == []
        await eventually(lambda: _stream_is_empty(rig))


async def test_an_unapproved_post_is_blocked_until_it_is_approved(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", approved=False)
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "NOT_APPROVED"
        assert rig.sandbox.effects() == []

        await rig.save_draft("d1", version=2)
        await rig.in_state("PUBLISHED", "d1")
        assert len(rig.sandbox.effects()) == 1


async def test_a_post_of_an_unknown_account_waits_for_its_connection(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "ACCOUNT_NOT_CONNECTED"
        await rig.connect()
        await rig.in_state("PUBLISHED", "d1")


async def test_a_command_before_its_draft_and_slot_waits_for_them(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now()
        slot = rig.ids.new()
        await rig.command("d1", slot, due, revision=3)
        await rig.schedule("d1", due, slot=slot)
        job = await rig.in_state("WAITING", "d1")
        assert job.state_reason == "CONTENT_PENDING"
        await rig.save_draft("d1", revision=3)
        await rig.in_state("PUBLISHED", "d1")


async def test_an_older_content_than_the_command_knows_is_not_sent(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="old")
        due = rig.clock.now()
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, revision=2)
        await rig.in_state("WAITING", "d1")
        await rig.save_draft("d1", said="new", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["new"]


async def test_a_command_that_comes_too_late_is_missed(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        due = rig.clock.now() - timedelta(hours=2)
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, not_after=due + timedelta(hours=1))
        await rig.in_state("MISSED", "d1")
        assert rig.sandbox.effects() == []
        assert (await rig.kinds("d1"))[-1] == "MISSED"


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


async def test_a_new_slot_after_a_failure_begins_the_next_run(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="x" * 5001)
        await rig.go("d1")
        await rig.in_state("FAILED", "d1")
        await rig.save_draft("d1", said="short", revision=2)
        await rig.go("d1", revision=2)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, job.attempts) == (2, 1)


async def test_a_rate_limited_post_waits_as_told_and_spends_no_attempt(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 429, "retry_after": 1, "count": 2})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        assert job.attempts == 1
        assert [attempt.state for attempt in await rig.attempts(job)] == ["NOT_SENT", "NOT_SENT", "ACCEPTED"]


async def test_a_provider_that_cannot_be_reached_is_tried_again_and_then_given_up(start: Start, free_port: Any) -> None:
    async with start() as rig:
        await rig.connect()
    async with start(sandbox_url=f"http://127.0.0.1:{free_port()}") as rig:
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("FAILED", "d1", within=20)
        assert job.error_reason == "CONNECTION_REFUSED"
        assert [attempt.state for attempt in await rig.attempts(job)] == ["NOT_SENT"] * 5


@pytest.mark.parametrize("fault", ["effect_then_reset", "effect_then_hang"])
async def test_a_lost_answer_is_found_out_and_never_sent_again(start: Start, fault: str) -> None:
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


async def test_refused_credentials_disconnect_the_account_and_a_new_connection_releases_the_post(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 401, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "ACCOUNT_NOT_CONNECTED"
        (account,) = await rig.rows("select state, version from social_account")
        assert (account.state, account.version) == ("DISCONNECTED", 2)
        await rig.connect()
        await rig.in_state("PUBLISHED", "d1")


async def test_copies_of_a_command_make_one_post_and_are_answered_again(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        due = rig.clock.now()
        slot = await rig.go("d1", due=due)
        await rig.in_state("PUBLISHED", "d1")
        await eventually(lambda: _stream_is_empty(rig))
        for emission in (1, 2, 3):
            await rig.command("d1", slot, due, emission=emission)
        await eventually(lambda: _stream_is_empty(rig))
        # Copies that meet here are answered together.
        assert (await rig.kinds("d1")).count("SUCCEEDED") in (2, 3)
        assert len(rig.sandbox.effects()) == 1


async def test_a_command_of_a_replaced_slot_is_dropped(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        old = rig.ids.new()
        far = rig.clock.now() + timedelta(hours=1)
        await rig.schedule("d1", far)
        await rig.in_state("SCHEDULED", "d1")
        await rig.command("d1", old, rig.clock.now())
        await eventually(lambda: _stream_is_empty(rig))
        assert (await rig.job("d1")).state == "SCHEDULED"
        assert rig.sandbox.effects() == []


async def test_posts_of_one_account_are_never_sent_at_the_same_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.1})
        names = [f"d{number}" for number in range(8)]
        for name in names:
            await rig.save_draft(name)
            await rig.go(name)
        for name in names:
            await rig.in_state("PUBLISHED", name, within=20)
        tries = await rig.rows("select start_time, end_time from attempt order by start_time")
        assert len(tries) == len(names)
        overlaps = [one for one, two in pairwise(tries) if two.start_time < one.end_time]
        assert overlaps == []


async def test_a_slow_try_is_announced_as_started(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=6)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 2.2, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        assert await rig.kinds("d1") == ["CREATED", "SCHEDULED", "STARTED", "SUCCEEDED"]


async def test_a_withdrawn_text_is_not_sent_and_its_successor_is(start: Start) -> None:
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


async def test_a_revision_that_nobody_has_announced_cannot_be_forbidden(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        for below in (2, 2**63 - 1):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rig.withdraw("d1", below=below)
            assert fault_from_error(refused.value).reason == "REVISION_NOT_KNOWN"
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")


async def test_after_a_withdrawal_that_was_too_late_other_targets_go_out(start: Start) -> None:
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


async def test_a_withdrawal_that_comes_too_late_names_the_try_in_flight(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=5)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 1, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("SENDING", "d1")
        answer = await rig.withdraw("d1", below=2)
        assert list(answer.in_flight_post_job_ids) == [job.id]
        await rig.in_state("PUBLISHED", "d1")


async def test_a_target_that_the_draft_no_longer_has_is_canceled(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")
        assert (await rig.job("d1")).state == "PENDING"


async def test_an_unreadable_command_becomes_a_dead_letter_and_the_next_one_goes_on(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        for payload in (b"\xff\xff", b""):
            await rig.client.jetstream().publish("publish.0.acme", payload)
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        letters = await rig.rows("select consumer, reason from dead_letter")
        assert [letter.consumer for letter in letters] == ["publisher", "publisher"]


async def test_a_content_that_does_not_match_its_digest_is_parked(start: Start) -> None:
    from postflow.drafts.v1 import drafts_events_pb2

    async with start() as rig:
        await rig.connect()
        bad = drafts_events_pb2.DraftSaved(
            organization_id="acme", draft_id="d0", version=1, content=b"x", content_digest="0"
        )
        await rig.announce("drafts", "draft", bad, "acme")
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        assert len(await rig.rows("select 1 from dead_letter")) == 1


async def _stream_is_empty(rig: Any) -> bool:
    return bool((await rig.client.jetstream().stream_info("PUBLISH")).state.messages == 0)
