"""The slots of drafts."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application.list_draft_slots import ListDraftSlots
from queue_service.domain.job import JobState
from servicekit.pg.session import Statement
from testkit.clocks import START
from tests.usecase.queue_service.steps import send_and_end

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LATER = START + timedelta(days=1)
FILL_DRAFT = Statement("""
    with added as (
        insert into slot (organization_id, id, draft_id, social_account_id, schedule_time, state, origin, revision,
            emission, not_after, time_zone, content_revision, traceparent, create_time, update_time, sequence)
        select 'acme', 's' || n, 'd1', 'page', cast(:start as timestamptz) + n * interval '1 hour', 'FAILED', 'EXACT',
            1, 0, 'infinity', '', 1, '', :start, :start, n
        from generate_series(1, :count) as n
        returning id
    )
    insert into slot_target (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url,
        error_message)
    select 'acme', id, 'facebook', '', '', 0, '', '' from added
""")


async def times(queue: "Queue", *drafts: str, live_only: bool = False, organization_id: str = "acme") -> object:
    found = await ListDraftSlots(queue.database)(organization_id, drafts, live_only=live_only)
    return [(draft, [slot.schedule_time for slot in slots]) for draft, slots in found]


@pytest.fixture
async def sent(queue: "Queue") -> "Queue":
    """Makes a draft that has failed and is queued again, and one that is queued."""
    await queue.save_draft("d1", "page")
    await queue.save_draft("d2", "page", "group")
    await send_and_end(queue, JobState.FAILED)
    await queue.at("d1", LATER)
    await queue.at("d2", LATER + timedelta(hours=1))
    return queue


async def test_slots_come_by_draft_in_the_order_of_the_request(sent: "Queue") -> None:
    twice = [LATER + timedelta(hours=1)] * 2
    assert await times(sent, "d2", "d9", "d1") == [("d2", twice), ("d9", []), ("d1", [START, LATER])]
    assert await times(sent, "d1", "d1") == [("d1", [START, LATER])] * 2


async def test_slots_that_have_ended_can_be_left_out(sent: "Queue") -> None:
    assert await times(sent, "d1", live_only=True) == [("d1", [LATER])]


async def test_drafts_of_another_organization_have_no_slots(sent: "Queue") -> None:
    assert await times(sent, "d1", organization_id="umbrella") == [("d1", [])]


async def test_the_newest_hundred_slots_of_a_draft_are_shown(queue: "Queue") -> None:
    async with queue.database.transaction() as tx:
        await tx.execute(FILL_DRAFT, {"start": START, "count": 120})
    assert await times(queue, "d1") == [("d1", [START + timedelta(hours=hour) for hour in range(21, 121)])]


async def test_drafts_of_several_pages_keep_their_order(queue: "Queue") -> None:
    drafts = [f"d{number}" for number in range(25)]
    for draft in drafts[::8]:
        await queue.save_draft(draft, draft)
        await queue.at(draft, LATER)
    assert await times(queue, *drafts) == [
        (draft, [] if number % 8 else [LATER]) for number, draft in enumerate(drafts)
    ]
