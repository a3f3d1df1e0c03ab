"""A restored database looks a follow-up up that it may have sent before it was lost."""

from datetime import datetime

from publisher_service.application.take_over_jobs import TakeOverJobs
from publisher_service.domain.outcome import Absent, Found
from publisher_service.domain.post_job import JobState, PostJob, Target
from publisher_service.domain.resolution import Resolution, Said
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.restored import announced_job
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.follow_ups import (
    COMMENTS,
    claim_part,
    claim_post,
    commented,
    due,
    id_of,
    jobs,
    publish,
    settle,
    states,
    write,
)
from tests.usecase.publisher_service.replica import DUE, FAR, Replica, TrustingAdapter
from tests.usecase.publisher_service.restoring import Replay, a_slot, leave, reconcile, restored

TARGET = Target(social_account_id="page-d0", channel="facebook")


def announced(part: int, state: JobState, *, version: int = 9) -> PostJob:
    """Returns a job as the stream has it."""
    is_out = state is JobState.PUBLISHED
    job = PostJob(
        organization_id="acme",
        id=id_of(part),
        draft_id="d0",
        target=TARGET,
        state=state,
        version=version,
        schedule_time=DUE,
        not_after=FAR,
        attempts=int(is_out),
        content_revision=1,
        external_id=f"out-{part}" if is_out else "",
        evidence_kind="PROVIDER_ID" if is_out else "",
        publish_time=DUE if is_out else None,
        part=part,
        parts=2 - part,
        follows="out-0" if part else "",
        next_action_time=DUE if state is JobState.READY else None,
        create_time=DUE,
        update_time=DUE,
    )
    message = post_job_changed(job).message
    return announced_job(message)  # type: ignore[arg-type]


def replaying(replica: Replica, *seen: PostJob) -> Replay:
    async def replay(since: datetime | None) -> None:
        take_over = TakeOverJobs(Outbox(Uuid7Source(), lambda rows: None))
        await replica.database.run(lambda tx: take_over(tx, seen, DUE))

    return replay


async def test_nothing_begins_before_the_announcements_are_applied(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await restored(replica)
    assert not await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "PENDING", "PENDING"]
    assert await due(replica) == 1


async def test_a_comment_behind_a_post_that_was_taken_over_is_looked_up(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    await restored(replica)
    await reconcile(replica, replaying(replica, announced(0, JobState.PUBLISHED)))
    assert await due(replica) == 1
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]
    assert (await jobs(replica))[1].follows == "out-0"


async def test_a_comment_behind_a_post_that_was_found_is_looked_up(replica: Replica, database_url: str) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    await restored(replica)
    await reconcile(replica)
    assert (await states(replica))[0] == "UNKNOWN RESTORED"
    seeing = Replica(database_url, adapter=SeeingAdapter())
    for part in range(3):
        (question,) = (await replica.recover()).questions
        assert question.job.part == part
        await seeing.look_up(question.job)
        assert await seeing.begin_follow_ups() == (part < 2)
    assert await states(replica) == ["PUBLISHED"] * 3, "nothing was sent again"
    await seeing.database.dispose()


async def test_a_comment_that_is_absent_goes_out(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    await restored(replica)
    await reconcile(replica, replaying(replica, announced(0, JobState.PUBLISHED)))
    await replica.begin_follow_ups()
    (question,) = (await replica.recover()).questions
    await replica.look_up(question.job)
    await leave(replica, force=True)
    claimed = await claim_part(replica)
    assert (claimed.job.part, claimed.job.follows, claimed.job.is_sent_now) == (1, "out-0", True)
    await settle(replica, claimed)
    assert (await states(replica))[1] == "PUBLISHED"


async def test_comments_that_the_copy_lacks_are_made_from_their_announcements(replica: Replica) -> None:
    await restored(replica)
    seen = [announced(0, JobState.PUBLISHED), announced(1, JobState.PUBLISHED), announced(2, JobState.READY)]
    await reconcile(replica, replaying(replica, *seen))
    assert [(job.part, job.parts, job.follows) for job in await jobs(replica)] == [
        (0, 2, ""),
        (1, 1, "out-0"),
        (2, 0, "out-0"),
    ]
    last = (await jobs(replica))[2]
    assert (last.called_run, last.publish_now, last.over_cap) == (1, True, True)
    assert await states(replica) == ["PUBLISHED", "PUBLISHED", "UNKNOWN RESTORED"], "it was due by the mark"


async def test_a_comment_behind_a_post_that_the_copy_shows_out_is_looked_up(replica: Replica) -> None:
    """The lost database has sent it, and its announcement is lost, too."""
    await write(replica)
    await publish(replica)
    await restored(replica)
    await reconcile(replica)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]


async def test_a_comment_behind_a_post_that_was_in_flight_is_looked_up(
    replica: Replica, hasty: Replica, database_url: str
) -> None:
    await write(replica)
    await claim_post(hasty)
    await replica.recover()
    await restored(replica)
    await reconcile(replica)
    seeing = Replica(database_url, adapter=SeeingAdapter())
    (question,) = (await replica.recover()).questions
    await seeing.look_up(question.job)
    await leave(replica)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]
    await seeing.database.dispose()


async def test_a_comment_behind_a_post_that_a_person_resolves_later_is_looked_up(
    replica: Replica, hasty: Replica
) -> None:
    await write(replica)
    await claim_post(hasty)
    await replica.recover()
    await restored(replica)
    await reconcile(replica)
    await leave(replica, force=True)
    assert (await states(replica))[0].startswith("NEEDS_ATTENTION")
    seen = Resolution(
        outcome=Said.PUBLISHED, external_id="seen", external_url="", publish_time=None, resolver="ann", note=""
    )
    await replica.resolve(call("ResolvePostJob"), id_of(0), seen)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]


async def test_a_comment_that_begins_before_the_restore_is_noticed_is_looked_up(
    replica: Replica, another: Replica
) -> None:
    """Finds it by its part: it is due after the mark, unlike all that the copy shows as due."""
    await write(replica)
    await publish(replica)
    assert await replica.begin_follow_ups()
    await restored(another, mark_time=DUE)
    await reconcile(another)
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]


async def test_a_comment_that_arrives_in_the_safe_mode_is_looked_up(replica: Replica) -> None:
    """Its draft was announced since the copy, and the lost database may have sent it."""
    await replica.posts(1)
    await settle(replica, await claim_post(replica))
    await restored(replica)
    await reconcile(replica)
    await replica.save(commented("d0", *COMMENTS, revision=2), now=await now(replica))
    await leave(replica)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "UNKNOWN RESTORED", "PENDING"]


async def test_a_comment_that_is_written_after_the_safe_mode_goes_out(replica: Replica) -> None:
    await replica.posts(1)
    await settle(replica, await claim_post(replica))
    await restored(replica)
    await reconcile(replica)
    await leave(replica)
    await replica.save(commented("d0", *COMMENTS, revision=2), now=await now(replica))
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]


async def test_a_comment_on_a_post_that_goes_out_after_the_safe_mode_goes_out(replica: Replica) -> None:
    await write(replica)
    await restored(replica)
    await reconcile(replica)
    await leave(replica)
    await publish(replica)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]


async def test_on_a_database_that_was_never_restored_nothing_is_looked_up(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.write("update attempt set sender = ''")
    assert await replica.begin_follow_ups()
    assert (await states(replica))[1] == "READY"


async def now(replica: Replica) -> datetime:
    async with replica.database.read() as connection:
        return await replica.clock.now(connection)


class SeeingAdapter(TrustingAdapter):
    """Finds every post."""

    async def look(self, post: object) -> Found | Absent:
        return Found(external_id=f"found-{getattr(post, 'idempotency_key', '')}", external_url="", publish_time=None)
