"""Events of follow-ups: the draft shows each of them, and is published once all are."""

import random
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from drafts_service.domain.post_job import JobState, PostJobEvent
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_PARTIALLY_PUBLISHED,
    DRAFT_STATE_PUBLISHED,
    DRAFT_STATE_PUBLISHING,
    DRAFT_STATE_SCHEDULED,
    Draft,
)

Get = Callable[..., Awaitable[Draft]]
ADraft = Callable[..., Awaitable[Draft]]
Reflect = Callable[..., Coroutine[Any, Any, None]]
Job = Callable[..., PostJobEvent]

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


async def test_a_failed_comment_is_shown_with_its_part(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    await a_draft()
    await reflect(
        a_job(JobState.PUBLISHED, version=3, publish_time=NINE, external_url="https://out"),
        a_job(JobState.PUBLISHED, version=3, publish_time=NINE, external_url="https://out/1", part=1),
        a_job(JobState.FAILED, version=4, error_message="too long", part=2),
        a_job(JobState.PENDING, part=3),
    )
    draft = await get_draft()
    assert draft.state == DRAFT_STATE_PARTIALLY_PUBLISHED
    (target,) = draft.target_states
    assert (target.post_job_id, target.post_job_state, target.external_url) == ("draft-a", "PUBLISHED", "https://out")
    assert [(each.part, each.post_job_id, each.post_job_state) for each in target.follow_ups] == [
        (1, "draft-a-1", "PUBLISHED"),
        (2, "draft-a-2", "FAILED"),
        (3, "draft-a-3", "PENDING"),
    ]
    assert target.follow_ups[0].external_url == "https://out/1"
    assert target.follow_ups[1].error_message == "too long"


async def test_a_draft_follows_its_comments_to_the_end(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    await a_draft()
    await reflect(a_job(JobState.PENDING), a_job(JobState.PENDING, part=1))
    await reflect(a_job(JobState.PUBLISHED, version=2, publish_time=NINE))
    draft = await get_draft()
    assert (draft.state, draft.schedule_time.ToDatetime(UTC)) == (DRAFT_STATE_SCHEDULED, NINE)
    await reflect(a_job(JobState.UNKNOWN, version=3, part=1))
    assert (await get_draft()).state == DRAFT_STATE_PUBLISHING
    await reflect(a_job(JobState.PUBLISHED, version=4, publish_time=NINE, part=1))
    assert (await get_draft()).state == DRAFT_STATE_PUBLISHED


async def test_the_order_of_the_events_of_parts_does_not_matter(
    a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    events = [
        a_job(state, version=version, publish_time=NINE if state is JobState.PUBLISHED else None, part=part)
        for part in range(3)
        for version, state in enumerate((JobState.PENDING, JobState.READY, JobState.PUBLISHED), start=1)
    ]
    shuffle = random.Random(7)
    for number in range(5):
        await a_draft(f"d{number}")
        arriving = [*events, *events[:3]]
        shuffle.shuffle(arriving)
        for event in arriving:
            changed = a_job(
                event.state,
                version=event.version,
                publish_time=event.publish_time,
                part=event.part,
                draft_id=f"d{number}",
            )
            await reflect(changed)
        assert (await get_draft(f"d{number}")).state == DRAFT_STATE_PUBLISHED
