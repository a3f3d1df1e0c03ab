"""Posts that may be out since the copy are looked up; those that are certainly later stay as they are."""

from datetime import datetime, timedelta

from publisher_service.domain.restored import VERSION_LEAP
from publisher_service.domain.safe_mode import Step
from tests.usecase.publisher_service.replica import DUE, FAR, Replica
from tests.usecase.publisher_service.restoring import a_slot, reconcile, reconciling, restored, scheduled, shown


async def test_what_was_due_by_the_mark_is_looked_up(replica: Replica) -> None:
    await scheduled(replica, 3)
    await restored(replica)
    await reconcile(replica)
    assert await replica.states() == {"UNKNOWN": 3}
    attempts = await replica.rows("select state, idempotency_key, post_job_id from attempt")
    assert [(row.state, row.idempotency_key) for row in attempts] == [
        ("UNKNOWN", f"{row.post_job_id}-1") for row in attempts
    ]
    assert (await shown(replica))[1].open == 3


async def test_what_is_due_later_is_not_touched(replica: Replica) -> None:
    await scheduled(replica, 2, due=FAR - timedelta(days=1))
    await restored(replica)
    await reconcile(replica)
    assert await replica.states() == {"SCHEDULED": 2}
    assert (await shown(replica))[1].untouched == 2


async def test_what_other_events_make_again_is_counted(replica: Replica) -> None:
    """Drafts and slots since the copy make a job, before Publisher's own announcement of it comes."""
    await scheduled(replica, 1, due=FAR - timedelta(days=1))

    async def replay(since: datetime | None) -> None:
        await replica.take(a_slot("new", FAR - timedelta(days=1)), now=(await shown(replica))[0].enter_time)

    await restored(replica)
    await reconcile(replica, replay)
    summary = (await shown(replica))[1]
    assert (summary.recreated, summary.untouched) == (1, 1)


async def test_what_was_due_between_the_mark_and_the_restore_is_not_touched(replica: Replica) -> None:
    await scheduled(replica, 1, due=DUE + timedelta(minutes=2))
    await restored(replica, mark_time=DUE)
    await reconcile(replica)
    assert await replica.states() == {"SCHEDULED": 1}


async def test_without_a_time_of_the_copy_an_attempt_may_be_as_old_as_its_post(replica: Replica) -> None:
    """A copy that no process with marks has worked on has none."""
    await scheduled(replica, 1)
    await restored(replica)
    assert (await shown(replica))[0].restored_time is None
    await reconcile(replica)
    (attempt,) = await replica.rows("select start_time from attempt")
    assert attempt.start_time <= DUE


async def test_versions_leap_over_what_others_have_seen(replica: Replica) -> None:
    await scheduled(replica, 2, due=FAR - timedelta(days=1))
    await restored(replica)
    await reconcile(replica)
    rows = await replica.rows("select version from post_job union all select version from social_account")
    assert all(row.version > VERSION_LEAP for row in rows)


async def test_what_is_put_in_doubt_leaps_before_it_is_announced(replica: Replica) -> None:
    """A look may prove it out before its turn to leap comes, and what is out keeps its version."""
    await scheduled(replica, 1)
    await restored(replica)
    for _ in range(2):
        await reconciling(replica).step()
    assert (await shown(replica))[0].step is Step.JOBS
    (row,) = await replica.rows("select state, version from post_job")
    assert row.state == "UNKNOWN"
    assert row.version > VERSION_LEAP


async def test_any_process_goes_on_where_another_has_stopped(replica: Replica, another: Replica) -> None:
    await scheduled(replica, 2)
    await restored(replica)
    steps = []
    for each in [replica, another] * 5:
        await reconciling(each).step()
        steps.append((await shown(replica))[0].step)
    assert steps[0] is Step.JOBS
    assert steps[-1] is Step.LOOKS
    assert await replica.states() == {"UNKNOWN": 2}
    assert len(await replica.rows("select * from outbox where subject like '%restored%'")) == 1


async def test_a_look_for_a_lost_account_proves_nothing_and_raises_nothing(replica: Replica) -> None:
    (name,) = await replica.posts(1, connected=False)
    await replica.take(a_slot(name, DUE))
    await restored(replica)
    await reconcile(replica)
    found = await replica.recover()
    for question in found.questions:
        await replica.look_up(question.job)
    assert len(found.questions) == 1
    assert await replica.states() == {"UNKNOWN": 1}
