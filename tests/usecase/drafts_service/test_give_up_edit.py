"""Ending a withdrawal without its edit: the draft is saved unchanged under a revision that may go out."""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from drafts_service.adapters.postgres.drafts import lock_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.give_up_edit import give_up_edit
from drafts_service.domain.draft import Change, Draft
from drafts_service.domain.post_job import DraftState, JobState, PostJob, PostJobEvent
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from postflow.drafts.v1.draft_pb2 import Draft as DraftMessage
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import UpdateDraftResponse
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

ADraft = Callable[..., Awaitable[DraftMessage]]
Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
Reflect = Callable[..., Awaitable[None]]
Job = Callable[..., PostJobEvent]
Stored = Callable[[], Awaitable[Draft]]
GiveUp = Callable[[WithdrawalAnswer], Awaitable[Draft]]

KEY = ("org", "draft")
NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def stored(database: Database) -> Stored:
    async def read() -> Draft:
        async with database.transaction() as tx:
            draft = await lock_draft(tx, KEY)
        assert draft
        return draft

    return read


@pytest.fixture
def give_up(database: Database, outbox: Outbox, stored: Stored) -> GiveUp:
    """`await give_up(answer)` gives up the edit of the draft `draft`, and returns the draft as it is then."""

    async def after(answer: WithdrawalAnswer) -> Draft:
        async def work(tx: Transaction) -> None:
            draft = await lock_draft(tx, KEY)
            assert draft
            jobs = await find_jobs(tx, KEY)
            now = await DatabaseClock().now(tx.connection)
            await give_up_edit(tx, draft, jobs, answer, outbox=outbox, now=now)

        await database.run(work)
        return await stored()

    return after


@pytest.fixture
async def waiting(a_draft: ADraft, update_draft: Update, publisher: Any, stored: Stored) -> Draft:
    """An approved draft with targets on `a` and `b` whose edit waits until revision 1 is withdrawn."""
    await a_draft(accounts=("a", "b"), approved=True)
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(change=Change(text="new"))
    draft = await stored()
    assert (draft.revision, draft.withdrawal and draft.withdrawal.below) == (1, 2)
    return draft


def out(account: str = "a", version: int = 4) -> PostJob:
    return PostJob(
        organization_id="org",
        id=f"draft-{account}",
        draft_id="draft",
        version=version,
        target=Target(social_account_id=account, channel="facebook"),
        state=JobState.PUBLISHED,
        publish_time=NINE,
    )


async def test_the_draft_is_announced_unchanged_under_the_next_revision(
    waiting: Draft, give_up: GiveUp, announced: Announced
) -> None:
    before = await announced()
    after = await give_up(WithdrawalAnswer(below=2))
    assert (after.revision, after.version, after.withdrawal) == (2, waiting.version + 1, None)
    assert (after.body, after.targets, after.approval) == (waiting.body, waiting.targets, waiting.approval)
    assert after.etag == waiting.etag
    [saved] = (await announced())[len(before) :]
    assert (saved.revision, saved.version, saved.approved) == (2, after.version, True)
    assert saved.content_digest == waiting.body.digest


@pytest.mark.parametrize(
    ("in_flight", "published", "is_exposed"),
    [((), (), False), (("draft-a",), (), True), ((), (out(),), True)],
)
async def test_an_older_text_that_may_be_out_is_remembered(
    waiting: Draft, give_up: GiveUp, in_flight: tuple[str, ...], published: tuple[PostJob, ...], is_exposed: bool
) -> None:
    after = await give_up(WithdrawalAnswer(below=2, in_flight=in_flight, published=published))
    assert after.exposed is is_exposed


async def test_an_answer_about_no_newer_revision_clears_nothing(
    a_draft: ADraft, update_draft: Update, give_up: GiveUp, publisher: Any, stored: Stored, announced: Announced
) -> None:
    await a_draft(approved=True)
    publisher.in_flight = ("draft-a",)
    await update_draft(change=Change(text="new"))
    before, events = await stored(), await announced()
    assert (before.revision, before.exposed) == (2, True)
    assert await give_up(WithdrawalAnswer(below=2)) == before
    assert await announced() == events


async def test_an_answer_below_the_pending_revision_leaves_it_pending(
    waiting: Draft, give_up: GiveUp, announced: Announced
) -> None:
    events = await announced()
    assert await give_up(WithdrawalAnswer(below=1)) == waiting
    assert await announced() == events


async def test_the_published_posts_of_the_answer_are_stored_and_folded(
    waiting: Draft, give_up: GiveUp, database: Database
) -> None:
    after = await give_up(WithdrawalAnswer(below=2, published=(out("a"), out("b"))))
    assert (after.folded.state, after.folded.publish_time) == (DraftState.PUBLISHED, NINE)
    async with database.read_session() as session:
        jobs = await find_jobs(session, KEY)
    assert sorted(jobs, key=lambda job: job.id) == [out("a"), out("b")]


async def test_jobs_that_the_answer_does_not_name_count_too(
    waiting: Draft, give_up: GiveUp, reflect: Reflect, a_job: Job
) -> None:
    await reflect(a_job(JobState.SCHEDULED, account="b", schedule_time=NINE))
    after = await give_up(WithdrawalAnswer(below=2, published=(out("a"),)))
    assert (after.folded.state, after.folded.schedule_time) == (DraftState.SCHEDULED, NINE)


async def test_a_job_known_at_a_newer_version_keeps_its_state(
    waiting: Draft, give_up: GiveUp, reflect: Reflect, a_job: Job
) -> None:
    await reflect(a_job(JobState.NEEDS_ATTENTION, account="a", version=5))
    after = await give_up(WithdrawalAnswer(below=2, published=(out("a", version=4),)))
    assert after.folded.state is DraftState.NEEDS_ATTENTION
