import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.domain.content import Content
from drafts_service.domain.post_job import JobState, PostJobEvent, fold, latest
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_BLOCKED,
    DRAFT_STATE_DRAFT,
    DRAFT_STATE_PARTIALLY_PUBLISHED,
    DRAFT_STATE_PUBLISHED,
    DRAFT_STATE_PUBLISHING,
    DRAFT_STATE_SCHEDULED,
    Draft,
    DraftState,
)
from postflow.drafts.v1.drafts_service_pb2 import CreateDraftResponse
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from testkit.eventually import eventually

Get = Callable[..., Awaitable[Draft]]
Create = Callable[..., Coroutine[Any, Any, CreateDraftResponse]]
ADraft = Callable[..., Awaitable[Draft]]
Reflect = Callable[..., Coroutine[Any, Any, None]]
Job = Callable[..., PostJobEvent]

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


async def counted(database: Database, table: str) -> int:
    async with database.read() as connection:
        number: int = (await connection.execute(text(f"select count(*) from {table}"))).scalar_one()  # noqa: S608
        return number


async def someone_waits_for_a_lock(database: Database) -> bool:
    query = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with database.statement() as connection:
        waiting: int = (await connection.execute(text(query))).scalar_one()
    return waiting > 0


async def test_a_draft_follows_its_jobs_to_the_end(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    etag = (await a_draft(accounts=("a", "b"))).etag

    async def after(*jobs: PostJobEvent) -> Draft:
        await reflect(*jobs)
        return await get_draft()

    assert (await after(a_job(JobState.PENDING), a_job(JobState.PENDING, account="b"))).state == DRAFT_STATE_DRAFT
    scheduled = await after(a_job(JobState.SCHEDULED, version=2, schedule_time=NINE))
    assert scheduled.state == DRAFT_STATE_SCHEDULED
    assert scheduled.schedule_time.ToDatetime(UTC) == NINE
    assert (await after(a_job(JobState.SENDING, version=3))).state == DRAFT_STATE_PUBLISHING
    await reflect(
        a_job(JobState.PUBLISHED, version=4, publish_time=NINE, external_url="https://social.example/1"),
        a_job(JobState.FAILED, version=2, account="b", error_message="no"),
    )
    ended = await after()
    assert ended.state == DRAFT_STATE_PARTIALLY_PUBLISHED
    assert not ended.HasField("schedule_time")
    first, second = ended.target_states
    assert (first.target.social_account_id, first.post_job_id, first.post_job_state) == ("a", "draft-a", "PUBLISHED")
    assert (first.external_url, first.publish_time.ToDatetime(UTC)) == ("https://social.example/1", NINE)
    assert (second.post_job_state, second.error_message) == ("FAILED", "no")
    published = await after(a_job(JobState.PUBLISHED, version=5, account="b", publish_time=NINE))
    assert (published.state, published.publish_time.ToDatetime(UTC)) == (DRAFT_STATE_PUBLISHED, NINE)
    assert published.etag == etag


async def test_an_older_event_is_archived_and_changes_nothing(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job, database: Database
) -> None:
    await a_draft()
    await reflect(a_job(JobState.PUBLISHED, version=5))
    await reflect(a_job(JobState.READY, version=3), a_job(JobState.SENDING, version=4))
    draft = await get_draft()
    assert (draft.state, draft.target_states[0].post_job_state) == (DRAFT_STATE_PUBLISHED, "PUBLISHED")
    assert await counted(database, "post_job_event") == 3


async def test_a_duplicate_event_is_stored_once_even_within_a_batch(
    a_draft: ADraft, reflect: Reflect, a_job: Job, database: Database
) -> None:
    await a_draft()
    await reflect(a_job(JobState.READY), a_job(JobState.READY))
    await reflect(a_job(JobState.READY))
    assert await counted(database, "post_job_event") == 1
    assert await counted(database, "post_job") == 1


async def test_events_of_a_missing_draft_are_stored(reflect: Reflect, a_job: Job, database: Database) -> None:
    await reflect(a_job(JobState.READY, draft_id="elsewhere"))
    assert (await counted(database, "post_job_event"), await counted(database, "post_job")) == (1, 1)


async def test_jobs_of_another_organization_are_not_mixed_in(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    await a_draft()
    await a_draft(organization_id="other")
    await reflect(a_job(JobState.PUBLISHED), a_job(JobState.FAILED, organization_id="other"))
    draft = await get_draft()
    assert draft.state == DRAFT_STATE_PUBLISHED
    assert len(draft.target_states) == 1


async def test_concurrent_batches_that_share_drafts_end_in_one_state(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    names = [f"draft-{number}" for number in range(10)]
    for name in names:
        await a_draft(name, accounts=("a", "b", "c"))
    events = [
        a_job(state, version=version, draft_id=name, account=account)
        for name in names
        for account in "abc"
        for version, state in enumerate((JobState.SCHEDULED, JobState.SENDING, JobState.PUBLISHED), start=1)
    ]
    chance = random.Random(7)
    arriving = chance.sample(events, len(events)) + chance.choices(events, k=30)
    async with asyncio.TaskGroup() as group:
        for start in range(0, len(arriving), 15):
            group.create_task(reflect(*arriving[start : start + 15]))
    for name in names:
        draft = await get_draft(name)
        assert draft.state == DRAFT_STATE_PUBLISHED
        assert {each.post_job_state for each in draft.target_states} == {"PUBLISHED"}


async def test_a_draft_created_while_its_events_are_stored_is_folded_from_them(
    database: Database, create_draft: Create, get_draft: Get, a_job: Job
) -> None:
    targets = (Target(social_account_id="a", channel="facebook"),)
    async with asyncio.TaskGroup() as group, database.transaction() as tx:
        now = await DatabaseClock().now(tx.connection)
        await ReflectPostJobs()(tx, [a_job(JobState.PUBLISHED)], now)
        creation = group.create_task(create_draft(draft_id="draft", content=Content(text="text"), targets=targets))
        await eventually(partial(someone_waits_for_a_lock, database))
        assert not creation.done()
    assert creation.result().draft.state == DRAFT_STATE_PUBLISHED
    assert await get_draft() == creation.result().draft


events = st.builds(
    lambda state, version, account, schedule_time, part: (state, version, account, schedule_time, part),
    st.sampled_from(JobState),
    st.integers(1, 4),
    st.sampled_from("abc"),
    st.none() | st.sampled_from([NINE]),
    st.integers(0, 1),
)


@pytest.fixture
async def reset(database: Database) -> Callable[[], Awaitable[None]]:
    async def empty() -> None:
        async with database.statement() as connection:
            await connection.execute(text("truncate draft, post_job, post_job_event"))

    return empty


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(events, min_size=1, max_size=5), min_size=1, max_size=4))
async def test_the_database_holds_the_state_that_fold_returns(
    a_draft: ADraft,
    get_draft: Get,
    reflect: Reflect,
    a_job: Job,
    reset: Callable[[], Awaitable[None]],
    batches: Sequence[Sequence[tuple[JobState, int, str, datetime | None, int]]],
) -> None:
    await reset()
    await a_draft(accounts=("a", "b", "c"))
    first: dict[tuple[str, int, int], PostJobEvent] = {}
    for batch in batches:
        jobs = [
            # A version is announced once; its duplicates are equal.
            first.setdefault(
                (account, part, version),
                a_job(state, version=version, account=account, schedule_time=schedule_time, part=part),
            )
            for state, version, account, schedule_time, part in batch
        ]
        await reflect(*jobs)
    draft = await get_draft()
    targets = [Target(social_account_id=account, channel="facebook") for account in "abc"]
    expected = fold(targets, latest(first.values()))
    assert DraftState.Name(draft.state) == f"DRAFT_STATE_{expected.state}"
    assert draft.HasField("schedule_time") is (expected.schedule_time is not None)
    assert {each.post_job_id: each.post_job_state for each in draft.target_states if each.post_job_id} == {
        job.id: job.state for job in latest(first.values()) if not job.part
    }
    assert [each.target.social_account_id for each in draft.target_states] == ["a", "b", "c"]


async def test_a_draft_loses_its_time_with_its_slots_in_any_order(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    await a_draft(accounts=("a", "b"))
    scheduled = [a_job(JobState.SCHEDULED, account=each, version=2, schedule_time=NINE) for each in "ab"]
    gone = [
        a_job(JobState.PENDING, account="a", version=3),
        a_job(JobState.CANCELED, account="b", version=3, schedule_time=NINE, state_reason="TAKEN_BACK"),
    ]
    for batch in (scheduled, gone, scheduled):
        await reflect(*batch)
    draft = await get_draft()
    assert (draft.state, draft.HasField("schedule_time")) == (DRAFT_STATE_DRAFT, False)
    assert [each.HasField("schedule_time") for each in draft.target_states] == [False, False]
    assert [each.state_reason for each in draft.target_states] == ["", "TAKEN_BACK"]
    await reflect(a_job(JobState.SCHEDULED, account="b", version=4, schedule_time=NINE))
    assert (await get_draft()).state == DRAFT_STATE_SCHEDULED


async def test_a_hold_blocks_a_draft_and_says_so(a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job) -> None:
    await a_draft()
    await reflect(a_job(JobState.BLOCKED, schedule_time=NINE, state_reason="ACCOUNT_ON_HOLD"))
    draft = await get_draft()
    assert (draft.state, draft.target_states[0].state_reason) == (DRAFT_STATE_BLOCKED, "ACCOUNT_ON_HOLD")
