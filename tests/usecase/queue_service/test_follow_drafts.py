"""Targets that a draft gains join its live slots."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from queue_service.adapters.postgres.drafts import find_drafts, lock_drafts
from queue_service.domain.draft import Draft, Target
from queue_service.domain.job import JobState
from testkit.clocks import START
from tests.usecase.queue_service.steps import channels, send_and_end, slots_of

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")


async def test_the_newest_category_of_a_draft_is_kept(queue: "Queue") -> None:
    for version, category in ((1, ""), (3, "news"), (2, "sport")):
        await queue.save_draft("d1", FEED, version=version, category=category)
    await queue.save_draft("d2", FEED)
    async with queue.database.read_session() as session:
        found = await find_drafts(session, [("acme", "d1"), ("acme", "d2")])
    assert [known.draft.category_id for known in found.values()] == ["news", ""]
    learned = Draft(organization_id="acme", id="d3", revision=1, targets=(), category_id="sport")
    locked = await queue.database.run(lambda tx: lock_drafts(tx, [learned, found["acme", "d1"].draft]))
    assert [each.draft.category_id for each in locked.values()] == ["news", "sport"]


async def test_the_time_that_a_draft_asks_for_is_kept_until_it_asks_for_none(queue: "Queue") -> None:
    asks = text("select approved, requested_time from draft where id = 'd1'")
    for version, is_approved, time in ((1, False, START + HOUR), (2, True, START + 2 * HOUR), (3, False, None)):
        await queue.save_draft("d1", version=version, is_approved=is_approved, requested_time=time)
        async with queue.database.read() as connection:
            assert tuple((await connection.execute(asks)).one()) == (is_approved, time)


async def test_a_target_added_to_a_scheduled_draft_joins_its_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + HOUR)
    await queue.save_draft("d1", FEED, STORY, "other", revision=2, version=2)
    [slot] = await slots_of(queue)
    assert channels(slot) == ["facebook", "instagram_feed"]
    first, again = await queue.announced()
    assert (again.slot_id, again.revision, again.slot_sequence) == (first.slot_id, 1, first.slot_sequence)
    assert (again.schedule_time, again.not_after) == (first.schedule_time, first.not_after)
    assert [each.channel for each in again.targets] == ["facebook", "instagram_feed"]
    assert (first.content_revision, again.content_revision) == (1, 2)
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    assert {each.channel for each in queue.stream.taken()} == {"facebook", "instagram_feed"}


async def test_a_target_added_to_a_dispatched_slot_gets_a_command_at_once(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + timedelta(seconds=20))
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.READY, 2))
    await queue.save_draft("d1", FEED, STORY, revision=2, version=2)
    assert await queue.hand_over.repeat()
    [added] = queue.stream.taken()
    assert (added.channel, added.slot_id, added.content_revision) == ("instagram_feed", command.slot_id, 2)
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.settle(queue.report(added, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_saving_a_draft_without_new_targets_announces_no_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + HOUR)
    await queue.save_draft("d1", FEED, revision=2, version=2)
    await queue.save_draft("d1", "other", revision=3, version=3)
    await queue.save_draft("d1", FEED, STORY, revision=1, version=1)  # old news
    assert len(await queue.announced()) == 1
    [slot] = await slots_of(queue)
    assert channels(slot) == ["facebook"]


async def test_a_sent_target_does_not_join_a_newer_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await send_and_end(queue, JobState.PUBLISHED, JobState.MISSED)
    await queue.at("d1", START + HOUR)
    await queue.save_draft("d1", FEED, STORY, revision=2, version=2)
    assert channels((await slots_of(queue))[1]) == ["instagram_feed"]


async def test_a_draft_saved_while_it_is_scheduled_loses_no_target(queue: "Queue") -> None:
    """Covers both orders of the two commits."""
    for index in range(12):
        draft = f"d{index}"
        if index % 2:
            await queue.save_draft(draft, FEED)
        else:
            queue.drafts.drafts[draft] = Draft(
                organization_id="acme",
                id=draft,
                revision=1,
                targets=(Target(social_account_id="page", channel="facebook", destination=""),),
            )
        async with asyncio.TaskGroup() as group:
            group.create_task(queue.at(draft, START + index * HOUR))
            group.create_task(queue.save_draft(draft, FEED, STORY, revision=2, version=2))
    counts = await queue.rows("select count(*) as targets from slot_target group by slot_id")
    assert [row.targets for row in counts] == [2] * 12


async def test_a_slot_waits_for_a_draft_that_is_being_saved(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    async with asyncio.TaskGroup() as group:
        async with queue.database.transaction() as tx:
            saving = text("""
                update draft set version = 2, revision = 2, targets = targets || '[["page", "instagram_feed", "42"]]'
            """)
            await tx.connection.execute(saving)
            booking = group.create_task(queue.at("d1", START + HOUR))
            await queue.until_waiting()
        [slot] = await booking
    assert channels(slot) == ["facebook", "instagram_feed"]
