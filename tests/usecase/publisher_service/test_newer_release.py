"""Rows that a newer release has written stop neither other posts nor the process."""

from datetime import timedelta
from typing import Any

from postflow.publisher.v1 import (
    post_job_pb2,
    publisher_service_pb2,
    social_account_pb2,
    social_account_service_pb2,
)
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

MONTH = timedelta(days=30)
READY = """
    update post_job set state = 'READY', next_action_time = now(), schedule_time = now() where draft_id = 'odd'
"""


async def shown(rig: Rig, draft: str) -> tuple[post_job_pb2.PostJob, list[post_job_pb2.PostJob]]:
    """Returns the job by itself, and the jobs of its draft."""
    names = {"organization_id": "acme", "post_job_id": (await rig.job(draft)).id}
    single = await rig.publisher.GetPostJob(publisher_service_pb2.GetPostJobRequest(**names))
    listed = await rig.publisher.ListPostJobs(
        publisher_service_pb2.ListPostJobsRequest(organization_id="acme", draft_id=draft)
    )
    return single.post_job, list(listed.post_jobs)


async def scheduled(rig: Rig, draft: str) -> str:
    """Makes a draft whose slot is far ahead, and returns the slot."""
    await rig.save_draft(draft)
    slot: str = await rig.schedule(draft, rig.clock.now() + MONTH)
    await rig.in_state("SCHEDULED", draft)
    return slot


async def another_goes_out(rig: Rig, draft: str, account: str = "page") -> None:
    await rig.save_draft(draft, account)
    await rig.go(draft, account=account)
    await rig.in_state("PUBLISHED", draft, account)


async def test_a_post_with_an_unknown_reason_is_shown_and_goes_out_when_due(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        slot = await scheduled(rig, "odd")
        await rig.write(
            "update post_job set state = 'BLOCKED', state_reason = 'SOMETHING_NEW', next_action_time = not_after"
        )
        await rig.save_draft("odd", said="second", revision=2)
        await rig.move("odd", slot, rig.clock.now() + MONTH, revision=0)
        await another_goes_out(rig, "even")
        single, listed = await shown(rig, "odd")
        assert (single.state, single.state_reason) == (post_job_pb2.POST_JOB_STATE_BLOCKED, "SOMETHING_NEW")
        assert listed == [single]

        await rig.write(READY)
        job = await rig.in_state("PUBLISHED", "odd")
        assert job.state_reason == ""
        assert sorted(effect["text"] for effect in rig.sandbox.effects()) == ["hello", "second"]


async def test_an_unknown_outcome_with_an_unknown_reason_is_not_resent(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=60), unknown_deadline=timedelta(seconds=61)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("odd")
        await rig.go("odd")
        await rig.in_state("UNKNOWN", "odd")
        await rig.write(
            "update post_job set state_reason = 'SOMETHING_NEW', next_action_time = now(),"
            " unknown_until = now() + interval '1 second'"
        )
        await rig.in_state("NEEDS_ATTENTION", "odd")
        assert rig.sandbox.effects() == []


async def test_a_post_in_an_unknown_state_is_left_alone(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        slot = await scheduled(rig, "odd")
        # The migration of the newer release.
        await rig.write("alter table post_job drop constraint post_job_state_check, drop constraint post_job_moves")
        await rig.write(
            "update post_job set state = 'HELD', state_reason = 'IN_LINE',"
            " next_action_time = now() - interval '1 hour', schedule_time = now() - interval '1 hour'"
        )
        before = await eventually(lambda: set_aside(rig))
        await rig.command("odd", slot, rig.clock.now(), emission=2)
        await rig.save_draft("odd", said="second", revision=2)
        await rig.move("odd", slot, rig.clock.now() + MONTH)
        # In the line of the same account.
        due = rig.clock.now() + timedelta(seconds=1)
        for draft in ("even", "third"):
            await rig.save_draft(draft)
            await rig.go(draft, due=due)
        for draft in ("even", "third"):
            await rig.in_state("PUBLISHED", draft)
        single, listed = await shown(rig, "odd")
        assert (single.state, single.state_reason) == (post_job_pb2.POST_JOB_STATE_UNSPECIFIED, "IN_LINE")
        assert listed == [single]
        assert await rig.job("odd") == before
        # The meaning of the state is unknown, so the text may be out.
        assert list((await rig.withdraw("odd", below=2)).in_flight_post_job_ids) == [before.id]

        await rig.write("update post_job set withdrawn_below = 0")
        await rig.write(READY)
        await rig.in_state("PUBLISHED", "odd")
        assert sorted(effect["text"] for effect in rig.sandbox.effects()) == ["hello", "hello", "second"]


async def test_a_look_up_at_an_unknown_provider_is_left_to_a_person(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=1), unknown_deadline=timedelta(seconds=3)) as rig:
        await rig.connect()
        await rig.connect("other")
        await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
        await rig.save_draft("odd")
        await rig.go("odd")
        await rig.in_state("UNKNOWN", "odd")
        await rig.write("update social_account set provider = 'elsewhere' where id = 'page'")
        await rig.write("update account_gate set provider = 'elsewhere' where social_account_id = 'page'")
        await rig.save_draft("waits")
        await rig.go("waits")
        await another_goes_out(rig, "even", "other")
        job = await rig.in_state("NEEDS_ATTENTION", "odd", within=15)
        assert "does not have the provider elsewhere" in job.error_message
        job = await rig.in_state("READY", "waits")
        assert job.state_reason == "IN_LINE"


async def test_an_account_in_an_unknown_state_is_shown_and_can_reconnect(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.write("alter table social_account drop constraint social_account_state_check")
        await rig.write("update social_account set state = 'PAUSED', state_reason = 'SOMETHING_NEW'")
        request = social_account_service_pb2.ListAccountsRequest(organization_id="acme")
        (shown,) = (await rig.accounts.ListAccounts(request)).social_accounts
        assert (shown.state, shown.state_reason) == (
            social_account_pb2.SOCIAL_ACCOUNT_STATE_UNSPECIFIED,
            "SOMETHING_NEW",
        )
        await rig.connect(token="sandbox-new")
        (shown,) = (await rig.accounts.ListAccounts(request)).social_accounts
        assert (shown.state, shown.state_reason) == (social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED, "")


async def test_an_attempt_in_an_unknown_state_is_shown(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await another_goes_out(rig, "d1")
        await rig.write("alter table attempt drop constraint attempt_state_check")
        await rig.write("update attempt set state = 'SOMETHING_NEW'")
        request = publisher_service_pb2.GetPostJobRequest(organization_id="acme", post_job_id=(await rig.job("d1")).id)
        (attempt,) = (await rig.publisher.GetPostJob(request)).attempts
        assert attempt.state == "SOMETHING_NEW"


async def test_posts_of_an_unknown_provider_wait_in_line_and_others_go_out(start: Start) -> None:
    async with start() as rig:
        for account in ("page", "later"):
            await rig.connect(account)
        await rig.write("update social_account set provider = 'of-a-newer-release' where id = 'later'")
        await rig.write("update account_gate set provider = 'of-a-newer-release' where social_account_id = 'later'")
        await rig.post_many(3, account="later", prefix="later-")
        await rig.post_many(3)
        for number in range(3):
            await rig.in_state("PUBLISHED", f"d{number}")
            waiting = await rig.in_state("READY", f"later-{number}", "later")
            assert waiting.state_reason == "IN_LINE"
        await rig.write("update social_account set provider = 'sandbox' where id = 'later'")
        await rig.write("update account_gate set provider = 'sandbox' where social_account_id = 'later'")
        await rig.all_in("PUBLISHED", 6)


async def set_aside(rig: Rig) -> Any:
    job = await rig.job("odd")
    assert job.next_action_time > rig.clock.now()
    return job
