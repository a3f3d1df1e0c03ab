"""The announcements since the copy are what Publisher itself has said of its jobs."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from publisher_service.application.take_over_jobs import TakeOverJobs
from publisher_service.domain.post_job import JobState, PostJob, Reason
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from tests.usecase.publisher_service.replica import DUE, FAR, Replica, a_command, claims_in
from tests.usecase.publisher_service.restoring import a_slot, leave, reconcile, restored, scheduled, shown

CAPPED = """
    insert into account_action (organization_id, social_account_id, action, cap)
    select organization_id, social_account_id, 'POST', 5 from account_gate
"""


async def test_what_was_announced_since_is_taken_over(replica: Replica) -> None:
    names = await scheduled(replica, 3)
    jobs = {row.draft_id: row for row in await replica.rows("select * from post_job")}

    def seen(name: str, state: JobState, version: int) -> PostJob:
        row = jobs[name]
        return PostJob(
            organization_id="acme", id=row.id, draft_id=name, target=a_command(name).target, state=state,
            version=version, run=1, slot_id=row.slot_id, slot_revision=row.slot_revision,
            schedule_time=row.schedule_time, not_after=row.not_after, attempts=1, content_revision=1,
            external_id="out" if state is JobState.PUBLISHED else "",
            evidence_kind="PROVIDER_ID" if state is JobState.PUBLISHED else "",
            publish_time=DUE if state is JobState.PUBLISHED else None,
            error_reason="REJECTED" if state is JobState.FAILED else "",
            last_attempt_time=DUE, create_time=row.create_time, update_time=DUE,
        )  # fmt: skip

    announced = [
        seen(names[0], JobState.PUBLISHED, 9),
        seen(names[1], JobState.FAILED, 9),
        seen(names[2], JobState.SENDING, 9),
    ]

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        for _ in range(2):
            await replica.database.run(lambda tx: take_over(tx, announced, DUE))

    await restored(replica)
    await reconcile(replica, replay)
    assert await replica.states() == {"PUBLISHED": 1, "FAILED": 1, "UNKNOWN": 1}
    attempts = await replica.rows("select state, external_id from attempt order by state")
    assert [(row.state, row.external_id) for row in attempts] == [("ACCEPTED", "out"), ("UNKNOWN", "")]
    _, summary = await shown(replica)
    assert (summary.published, summary.open, summary.recreated) == (1, 1, 0)


async def test_what_was_sent_since_the_copy_counts_for_the_limits(replica: Replica) -> None:
    names = await scheduled(replica, 3)
    await replica.write(CAPPED)
    await replica.write("update account_gate set limited = true, post_spacing = interval '1 hour'")
    jobs = {row.draft_id: row for row in await replica.rows("select * from post_job")}
    (published, failed) = (
        PostJob(
            organization_id="acme", id=jobs[name].id, draft_id=name, target=a_command(name).target, state=state,
            version=9, slot_id=jobs[name].slot_id, slot_revision=jobs[name].slot_revision,
            schedule_time=DUE, not_after=FAR, attempts=1, content_revision=1, last_attempt_time=DUE,
            create_time=jobs[name].create_time, update_time=DUE,
        )
        for name, state in zip(names[:2], (JobState.PUBLISHED, JobState.FAILED), strict=True)
    )  # fmt: skip
    failed = replace(failed, error_reason="REJECTED")
    published = replace(published, external_id="out", evidence_kind="PROVIDER_ID", publish_time=DUE)

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, [published, failed], DUE))

    await restored(replica)
    await reconcile(replica, replay)
    assert await replica.states() == {"PUBLISHED": 1, "FAILED": 1, "UNKNOWN": 1}
    reserved = await replica.rows("select post_job_id from reservation where action = 'POST'")
    assert {row.post_job_id for row in reserved} == {jobs[names[0]].id, jobs[names[2]].id}
    gates = await replica.rows("select social_account_id from account_gate where last_post_time is not null")
    assert len(gates) == 2


@pytest.mark.parametrize("reason", [Reason.DAILY_CAP, Reason.SPACING, Reason.SEND_WINDOW, Reason.MEDIA])
async def test_what_a_limit_kept_back_is_judged_again(replica: Replica, reason: Reason) -> None:
    (name,) = await scheduled(replica, 1)
    (row,) = await replica.rows("select * from post_job")
    seen = PostJob(
        organization_id="acme", id=row.id, draft_id=name, target=a_command(name).target, state=JobState.WAITING,
        state_reason=reason, version=9, slot_id=row.slot_id, slot_revision=row.slot_revision, schedule_time=DUE,
        not_after=FAR, next_action_time=FAR, create_time=row.create_time, update_time=DUE,
    )  # fmt: skip

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, [seen], DUE))

    # Nothing was claimed by the time at which it was due.
    await restored(replica, mark_time=DUE - timedelta(hours=1))
    await reconcile(replica, replay)
    assert await replica.states() == {"READY": 1}
    assert len((await replica.recover()).due) == 1


async def test_a_job_that_the_copy_lacks_is_made_from_its_announcement(replica: Replica) -> None:
    command = a_command("new")
    seen = PostJob(
        organization_id="acme", id=command.post_job_id, draft_id="new", target=command.target,
        state=JobState.SCHEDULED, version=3, slot_id="slot", slot_revision=1, schedule_time=FAR - timedelta(hours=1),
        not_after=FAR, create_time=DUE, update_time=DUE,
    )  # fmt: skip

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, [seen], DUE))

    await restored(replica)
    await reconcile(replica, replay)
    assert await replica.states() == {"SCHEDULED": 1}
    assert (await shown(replica))[1].recreated == 1


@pytest.mark.parametrize("due", [DUE, FAR - timedelta(days=1)])
@pytest.mark.parametrize("state", [JobState.READY, JobState.WAITING, JobState.BLOCKED])
async def test_a_resend_that_was_announced_is_looked_up_again_and_can_be_sent(
    replica: Replica, state: JobState, due: datetime
) -> None:
    """An attempt was found to be absent, and another one may have begun since."""
    (name,) = await scheduled(replica, 1, due=due)
    (row,) = await replica.rows("select * from post_job")
    reason = {JobState.WAITING: "RETRY", JobState.BLOCKED: "ACCOUNT_ON_HOLD"}.get(state, "")
    seen = PostJob(
        organization_id="acme", id=row.id, draft_id=name, target=a_command(name).target, state=state,
        state_reason=reason, version=9, run=1, slot_id=row.slot_id, slot_revision=row.slot_revision, in_doubt=True,
        schedule_time=due, not_after=FAR, next_action_time=DUE, attempts=1, content_revision=1, create_time=DUE,
        update_time=DUE,
    )  # fmt: skip

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, [seen], DUE))

    await restored(replica)
    await reconcile(replica, replay)
    for question in (await replica.recover()).questions:
        await replica.look_up(question.job)
    await leave(replica)
    await replica.write("update post_job set state = 'READY', state_reason = '', next_action_time = update_time")
    (again,) = claims_in(await replica.claim([replace(a_command(name), schedule_time=DUE)]))
    assert again.job.in_doubt


async def test_the_next_run_of_what_was_taken_over_is_looked_up_if_it_may_be_out(replica: Replica) -> None:
    """Takes over a canceled post with another slot, and no announcement that it was sent from that one."""
    (name,) = await scheduled(replica, 1)
    (row,) = await replica.rows("select * from post_job")
    seen = PostJob(
        organization_id="acme", id=row.id, draft_id=name, target=a_command(name).target, state=JobState.CANCELED,
        version=9, run=1, slot_id=row.slot_id, slot_revision=row.slot_revision, create_time=DUE, update_time=DUE,
    )  # fmt: skip

    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, [seen], DUE))
        await replica.take(replace(a_slot(name, DUE), slot_id="slot-2", sequence=2))

    await restored(replica)
    await reconcile(replica, replay)
    assert await replica.states() == {"UNKNOWN": 1}
    (attempt,) = await replica.rows("select run from attempt")
    assert attempt.run == 2
