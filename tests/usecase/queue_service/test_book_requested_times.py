"""Approved drafts get slots at the times that they ask for, in any order of their announcements."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import TYPE_CHECKING

from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_DRAFT_TIME
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from servicekit.faults import Refused
from servicekit.pg.database import Database, Transaction
from testkit.clocks import START
from tests.usecase.queue_service.steps import channels, send_and_end, slots_of

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
NOON, LATER = START + 3 * HOUR, START + 5 * HOUR
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")


def asking(
    draft_id: str = "d1",
    *accounts: str,
    version: int = 1,
    time: datetime | None = NOON,
    is_approved: bool = True,
    organization_id: str = "acme",
) -> SavedDraft:
    targets = tuple(
        Target(social_account_id=each, channel="facebook", destination="") for each in accounts or ("page",)
    )
    draft = Draft(organization_id=organization_id, id=draft_id, revision=1, targets=targets)
    return SavedDraft(draft=draft, version=version, is_approved=is_approved, requested_time=time)


async def booked(queue: "Queue") -> dict[tuple[str, str], tuple[datetime, str, int]]:
    rows = await queue.rows(
        "select draft_id, social_account_id, schedule_time, origin, revision from slot order by 1, 2"
    )
    return {(draft, account): (time, origin, revision) for draft, account, time, origin, revision in rows}


async def refused(queue: "Queue") -> list[tuple[str, str, str, int]]:
    return [(each.draft_id, each.social_account_id, each.reason, each.draft_version) for each in await queue.refusals()]


async def test_an_approved_draft_gets_a_slot_on_each_account(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking("d1", "page", "group"))
    assert await booked(queue) == {("d1", account): (NOON, "DRAFT", 1) for account in ("group", "page")}
    first, second = await queue.announced()
    assert (first.schedule_time.ToDatetime(UTC), first.not_after, first.draft_id) == (NOON, second.not_after, "d1")
    assert await refused(queue) == []
    queue.now = NOON
    assert await queue.hand_over.dispatch()
    assert {each.draft_id for each in queue.stream.taken()} == {"d1"}


async def test_a_draft_gets_none_until_it_is_approved_and_keeps_it_afterwards(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking(is_approved=False))
    assert await booked(queue) == {}
    await queue.apply(queue.follow_drafts, asking(version=2))
    there = await booked(queue)
    assert len(there) == 1
    await queue.apply(queue.follow_drafts, asking(version=3, is_approved=False))
    await queue.apply(queue.follow_drafts, asking(version=4, is_approved=False, time=None))
    await queue.apply(queue.follow_drafts, asking(version=5, time=None))
    assert await booked(queue) == there
    assert len(await queue.announced()) == 1


async def test_announcements_in_any_order_and_twice_end_alike(queue: "Queue") -> None:
    """The newest one decides: each older one may or may not have been followed."""
    for number, order in enumerate(permutations([1, 2, 3])):
        draft = f"d{number}"
        at = {version: NOON + timedelta(minutes=10 * number + 2 * version) for version in order}
        for version in (*order, *order):
            await queue.apply(queue.follow_drafts, asking(draft, version=version, time=at[version]))
        assert (await booked(queue))[draft, "page"][:2] == (at[3], "DRAFT")
    assert await refused(queue) == []


async def test_a_redelivered_announcement_gives_no_second_slot(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking())
    await queue.apply(queue.follow_drafts, asking(), asking())
    await queue.rows("update slot set state = 'CANCELED', next_emit_at = null returning id")
    await queue.apply(queue.follow_drafts, asking())
    assert len(await queue.announced()) == 1


async def test_another_change_of_the_draft_does_not_bring_a_removed_slot_back(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking())
    await queue.rows("update slot set state = 'CANCELED', next_emit_at = null returning id")
    await queue.apply(queue.follow_drafts, asking(version=2))
    assert len(await queue.announced()) == 1
    await queue.apply(queue.follow_drafts, asking(version=3, is_approved=False), asking(version=4))
    assert len(await queue.announced()) == 1, "its approval was lost and given again before Queue heard of it"


async def test_an_own_slot_moves_with_the_time(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking())
    [before] = await queue.announced()
    [(etag,)] = await queue.rows("select arrangement from account_queue")
    await queue.apply(queue.follow_drafts, asking(version=2, time=LATER))
    assert await booked(queue) == {("d1", "page"): (LATER, "DRAFT", 2)}
    [moved] = await queue.moves()
    assert (moved.slot_id, moved.revision, moved.reason) == (before.slot_id, 2, SLOT_MOVE_REASON_DRAFT_TIME)
    assert moved.previous_schedule_time.ToDatetime(UTC) == NOON
    assert moved.not_after.ToDatetime(UTC) - before.not_after.ToDatetime(UTC) == LATER - NOON
    [(next_due, after)] = await queue.rows("select next_due_time, arrangement from account_queue")
    assert (next_due, after) == (LATER, etag + 1)


async def test_a_slot_that_is_dispatched_or_that_others_gave_stays(queue: "Queue") -> None:
    await queue.save_draft("exact", FEED)
    await queue.at("exact", NOON + HOUR)
    await queue.apply(queue.follow_drafts, asking("gone", time=START + timedelta(seconds=10)))
    await queue.hand_over.dispatch()
    there = await booked(queue)
    await queue.apply(
        queue.follow_drafts, asking("exact", version=2, time=LATER), asking("gone", version=2, time=LATER)
    )
    assert await booked(queue) == there
    assert await refused(queue) == [("exact", "page", "ALREADY_QUEUED", 2), ("gone", "page", "ALREADY_QUEUED", 2)]
    await queue.apply(queue.follow_drafts, asking("exact", version=3, time=NOON + HOUR))
    assert len(await refused(queue)) == 2, "it has a slot at this very time"


async def test_each_refusal_says_why(queue: "Queue") -> None:
    await queue.save_draft("other", FEED)
    await queue.at("other", LATER)
    await queue.apply(
        queue.follow_drafts,
        asking("late", time=START - 2 * HOUR, version=7),
        asking("far", time=START + timedelta(days=731)),
        asking("near", "page", "group", time=LATER + timedelta(seconds=59)),
    )
    assert await refused(queue) == [
        ("late", "page", "TIME_PASSED", 7),
        ("far", "page", "TIME_TOO_FAR", 1),
        ("near", "page", "SLOT_TAKEN", 1),
    ]
    assert list(await booked(queue)) == [("near", "group"), ("other", "page")]
    refusal = (await queue.refusals())[2]
    assert refusal.schedule_time.ToDatetime(UTC) == LATER + timedelta(seconds=59)
    assert (refusal.create_time.ToDatetime(UTC), bool(refusal.message)) == (queue.now, True)
    [subject] = {row.subject for row in queue.offered if b"SlotRefused" in row.payload}
    assert subject == "events.queue.draft"


async def test_of_two_drafts_that_ask_together_the_first_gets_the_time(queue: "Queue") -> None:
    await queue.apply(
        queue.follow_drafts, asking("d2"), asking("d1"), asking("d3", organization_id="umbrella"), asking("d4", "group")
    )
    assert set(await booked(queue)) == {("d2", "page"), ("d3", "page"), ("d4", "group")}
    assert await refused(queue) == [("d1", "page", "SLOT_TAKEN", 1)]


async def test_a_time_that_is_taken_leaves_the_slot_where_it_is(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking("d1"), asking("d2", time=LATER))
    await queue.apply(queue.follow_drafts, asking("d1", version=2, time=LATER))
    assert (await booked(queue))["d1", "page"] == (NOON, "DRAFT", 1)
    assert await refused(queue) == [("d1", "page", "SLOT_TAKEN", 2)]
    await queue.apply(
        queue.follow_drafts, asking("d1", version=3, time=LATER + HOUR), asking("d2", version=2, time=NOON)
    )
    assert {time for time, _, _ in (await booked(queue)).values()} == {LATER + HOUR, NOON}


async def test_targets_that_were_sent_get_no_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await send_and_end(queue, JobState.PUBLISHED, JobState.FAILED)
    await queue.save_draft("d1", FEED, STORY, version=2, is_approved=True, requested_time=NOON)
    newest = (await slots_of(queue))[-1]
    assert (channels(newest), newest.schedule_time.ToDatetime(UTC)) == (["instagram_feed"], NOON)
    queue.now = NOON
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.PUBLISHED, 9))
    await queue.save_draft("d1", FEED, STORY, version=3, is_approved=True, requested_time=LATER)
    assert await refused(queue) == [("d1", "page", "DRAFT_PUBLISHED", 3)]


async def test_a_new_account_of_a_draft_gets_a_slot_too(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking("d1", "page"))
    await queue.apply(queue.follow_drafts, asking("d1", "page", "group", version=2))
    assert await booked(queue) == {("d1", account): (NOON, "DRAFT", 1) for account in ("group", "page")}


async def test_a_new_account_does_not_bring_back_the_slot_of_another(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking("d1", "page"))
    await queue.rows("update slot set state = 'CANCELED', next_emit_at = null returning id")
    await queue.apply(queue.follow_drafts, asking("d1", "page", "group", version=2))
    assert [each.social_account_id for each in await queue.announced()] == ["page", "group"]


async def test_calls_and_announcements_that_meet_keep_slots_apart(queue: "Queue") -> None:
    drafts = [f"d{number}" for number in range(8)]
    for draft in drafts:
        await queue.save_draft(draft, FEED)

    async def schedule(draft: str) -> None:
        with suppress(Refused):
            await queue.at(draft, NOON)

    async with asyncio.TaskGroup() as group:
        for number, draft in enumerate(drafts):
            if number % 2:
                group.create_task(schedule(draft))
            else:
                group.create_task(queue.apply(queue.follow_drafts, asking(draft, version=2)))
    assert len(await booked(queue)) == 1


async def test_of_several_announcements_in_a_batch_only_the_newest_asks(queue: "Queue") -> None:
    await queue.apply(queue.follow_drafts, asking(version=1), asking(version=3, time=LATER), asking(version=2))
    assert await booked(queue) == {("d1", "page"): (LATER, "DRAFT", 1)}
    assert await refused(queue) == []


async def test_an_older_announcement_asks_for_nothing_once_a_newer_one_is_stored(
    queue: "Queue", database: Database
) -> None:
    """The older one is waiting for the lock of another account."""
    await queue.put_schedule("group")

    async def hold(tx: Transaction) -> None:
        await lock_queues(tx, [("acme", "group")])
        group.create_task(queue.apply(queue.follow_drafts, asking("d1", "group", "page")))
        await queue.until_waiting()
        await queue.apply(queue.follow_drafts, asking("d1", "page", version=2, time=LATER))

    async with asyncio.TaskGroup() as group:
        await database.run(hold)
    assert await booked(queue) == {("d1", "page"): (LATER, "DRAFT", 1)}
    assert await refused(queue) == []
