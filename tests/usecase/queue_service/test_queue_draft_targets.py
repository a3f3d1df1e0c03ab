"""Targets that are out already, that were just added, and that come to a slot later."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED, QUEUE_SLOT_STATE_PUBLISHED, QueueSlot
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position
from queue_service.wire.slots import queue_slot
from servicekit.faults import NotFound, Refused, Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]


async def sent(queue: "Queue", *ends: JobState) -> None:
    """A slot of the draft at this moment whose targets, in the order of their channels, end so."""
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    commands = sorted(queue.stream.taken(), key=lambda each: each.channel)
    pairs = zip(commands, ends, strict=True)
    await queue.settle(*(queue.report(command, end, 3) for command, end in pairs))


async def slots(queue: "Queue") -> list[QueueSlot]:
    page = await queue.list(Filter(organization_id="acme", draft_id="d1"), after=Position(), size=9)
    return [queue_slot(slot) for slot in page.slots]


def channels(slot: QueueSlot) -> list[str]:
    return [each.target.channel for each in slot.targets]


# out already


async def test_a_draft_that_is_out_is_not_scheduled_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", FEED)
    await sent(queue, JobState.PUBLISHED)
    for call in (queue.at("d1", START + HOUR), queue.at("d1", START + HOUR, "page"), queue.add("d1")):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.reason == "DRAFT_PUBLISHED"
        assert refused.value.metadata == {
            "draft_id": "d1",
            "social_account_id": "page",
            "post_job_id": "job-d1-facebook-",
            "external_url": "https://example.org/1",
        }
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_one_account_that_is_out_does_not_stop_another(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, "other")
    await queue.at("d1", queue.now, "page")
    await queue.hand_over.dispatch()
    await queue.settle(*(queue.report(each, JobState.PUBLISHED, 3) for each in queue.stream.taken()))
    [slot] = await queue.at("d1", START + HOUR, "other")
    assert slot.social_account_id == "other"


async def test_a_new_slot_has_the_targets_that_are_not_out_yet(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await sent(queue, JobState.PUBLISHED, JobState.MISSED)
    [slot] = await queue.at("d1", START + HOUR)
    assert channels(slot) == ["instagram_feed"]
    assert [channel for each in (await queue.announced())[1:] for channel in (t.channel for t in each.targets)] == [
        "instagram_feed"
    ]


async def test_late_news_of_an_older_post_cancels_the_slot_and_frees_its_time(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, FEED)
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.FAILED, 3))
    [again] = await queue.add("d1")
    await queue.settle(queue.report(command, JobState.PUBLISHED, 4))
    first, second = await slots(queue)
    assert (first.state, second.id) == (QUEUE_SLOT_STATE_PUBLISHED, again.id)
    assert (second.state, second.state_reason) == (QUEUE_SLOT_STATE_CANCELED, "DRAFT_PUBLISHED")
    assert not second.HasField("publish_time")
    [free] = await queue.add("d2")
    assert free.schedule_time == again.schedule_time


# just added


async def test_a_target_that_was_just_added_can_be_scheduled_at_once(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    queue.drafts.drafts["d1"] = Draft(
        organization_id="acme",
        id="d1",
        revision=2,
        targets=tuple(Target(social_account_id=each, channel="facebook", destination="") for each in ("new", "page")),
    )
    [slot] = await queue.at("d1", START + HOUR, "new")
    assert slot.social_account_id == "new"
    assert queue.drafts.asked == 1
    await queue.at("d1", START + HOUR, "page")
    assert queue.drafts.asked == 1


async def test_only_drafts_says_that_an_account_is_no_target(queue: "Queue") -> None:
    saved = await queue.save_draft("d1", "page")
    queue.drafts.drafts["d1"] = saved
    with pytest.raises(Refused) as refused:
        await queue.at("d1", START + HOUR, "other")
    assert refused.value.reason == "ACCOUNT_NOT_A_TARGET"
    queue.drafts.fault = Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
    with pytest.raises(Unavailable):
        await queue.at("d1", START + HOUR, "other")
    queue.drafts.fault = NotFound("DRAFT_NOT_FOUND", "gone")
    with pytest.raises(NotFound):
        await queue.at("d1", START + HOUR, "other")


async def test_all_accounts_are_those_that_the_draft_has_now(queue: "Queue") -> None:
    await queue.put_schedule("new", *DAILY)
    await queue.save_draft("d1", "page")
    only_new = (Target(social_account_id="new", channel="facebook", destination=""),)
    queue.drafts.drafts["d1"] = Draft(organization_id="acme", id="d1", revision=2, targets=only_new)
    [slot] = await queue.at("d1", START + HOUR)
    assert slot.social_account_id == "new"
    await queue.settle(queue.report_on(slot, JobState.CANCELED, 2))
    [slot] = await queue.add("d1")
    assert slot.social_account_id == "new"


async def test_while_drafts_is_away_what_it_announced_counts(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    queue.drafts.fault = Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
    assert len(await queue.at("d1", START + HOUR)) == 1


# later


async def test_a_target_added_to_a_scheduled_draft_joins_its_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + HOUR)
    await queue.save_draft("d1", FEED, STORY, "other", revision=2, version=2)
    [slot] = await slots(queue)
    assert channels(slot) == ["facebook", "instagram_feed"]
    first, again = await queue.announced()
    assert (again.slot_id, again.revision, again.slot_sequence) == (first.slot_id, 1, first.slot_sequence)
    assert (again.schedule_time, again.not_after) == (first.schedule_time, first.not_after)
    assert [each.channel for each in again.targets] == ["facebook", "instagram_feed"]
    assert (first.content_revision, again.content_revision) == (1, 2)
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    assert {each.channel for each in queue.stream.taken()} == {"facebook", "instagram_feed"}


async def test_a_target_added_to_a_slot_that_was_handed_over_is_commanded_at_once(queue: "Queue") -> None:
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
    [slot] = await slots(queue)
    assert channels(slot) == ["facebook"]


async def test_a_target_that_is_out_does_not_join_a_newer_slot(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await sent(queue, JobState.PUBLISHED, JobState.MISSED)
    await queue.at("d1", START + HOUR)
    await queue.save_draft("d1", FEED, STORY, revision=2, version=2)
    assert channels((await slots(queue))[1]) == ["instagram_feed"]


async def test_a_slot_without_targets_left_is_canceled_and_another_can_be_had(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    [slot] = await queue.at("d1", START + HOUR)
    feed = queue.report_on(slot, JobState.CANCELED, 3)
    await queue.settle(feed)
    assert await queue.states() == {"d1": "SCHEDULED"}
    await queue.settle(feed._replace(channel="instagram_feed", destination="42"))
    assert await queue.states() == {"d1": "CANCELED"}
    await queue.save_draft("d2", "page")
    await queue.at("d2", START + HOUR)
    await queue.save_draft("d1", FEED, revision=2, version=2)
    [again] = await queue.at("d1", START + 2 * HOUR)
    assert channels(again) == ["facebook"]


async def test_a_draft_saved_while_it_is_scheduled_loses_no_target(queue: "Queue") -> None:
    """Whichever of the two commits first."""
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


async def test_a_slot_that_is_settled_while_a_target_joins_stays_open_for_it(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        targets = (Target(social_account_id="page", channel="instagram_feed", destination="42"),)
        draft = Draft(organization_id="acme", id="d1", revision=2, targets=targets)
        await queue.follow_drafts(tx, [SavedDraft(draft=draft, version=2)], queue.now)
        group.create_task(queue.settle(queue.report(command, JobState.PUBLISHED, 3)))
        await queue.until_waiting()
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.hand_over.repeat()
    [joined] = [each for each in queue.stream.taken() if each.channel == "instagram_feed"]
    await queue.settle(queue.report(joined, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_a_target_that_lost_the_time_of_a_slot_that_lives_gets_it_again(queue: "Queue") -> None:
    """It came back before Queue had heard that it was gone."""
    await queue.save_draft("d1", FEED)
    [slot] = await queue.at("d1", START + HOUR)
    await queue.settle(queue.report_on(slot, JobState.SCHEDULED, 2))
    lost = queue.report_on(slot, JobState.PENDING, 4)
    for _ in range(2):
        await queue.settle(lost, queue.report_on(slot, JobState.CANCELED, 3))
    first, again = await queue.announced()
    assert (again.slot_id, again.slot_sequence, again.revision) == (first.slot_id, first.slot_sequence, 2)
    assert (again.schedule_time, again.not_after) == (first.schedule_time, first.not_after)
    await queue.settle(lost._replace(state=JobState.CANCELED, slot_revision=2, version=5))
    assert await queue.states() == {"d1": "CANCELED"}


async def test_a_target_that_came_back_to_no_slot_gets_no_time(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    [slot] = await queue.at("d1", START + HOUR)
    await queue.settle(queue.report_on(slot, JobState.CANCELED, 3))
    await queue.settle(queue.report_on(slot, JobState.PENDING, 4))
    assert await queue.states() == {"d1": "CANCELED"}
    assert len(await queue.announced()) == 1
