"""AddToQueue gives a draft the next free weekly slot on each account."""

import asyncio
from datetime import UTC, date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.domain.job import JobState
from servicekit.faults import InvalidField, NotFound, Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def test_the_next_free_slot_time_is_taken(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, cap=1)
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", "42"), revision=3)
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON
    assert (slot.draft_id, slot.social_account_id, slot.revision) == ("d1", "page", 1)
    assert (slot.time_zone, slot.local_date, slot.local_time) == ("UTC", "2026-03-02", "12:00")
    assert slot.not_after.ToDatetime(UTC) == NOON + timedelta(hours=24)
    assert [(each.target.channel, each.target.destination) for each in slot.targets] == [
        ("facebook", ""),
        ("instagram_feed", "42"),
    ]
    [announced] = await queue.announced()
    assert announced.slot_id == slot.id
    assert announced.schedule_time == slot.schedule_time
    assert list(announced.targets) == [each.target for each in slot.targets]
    assert len(queue.offered) == 1
    assert not queue.new_slots.is_set()  # it is not due soon


async def test_drafts_fill_the_queue_one_after_the_other(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for index in range(3):
        await queue.save_draft(f"d{index}", "page")
        await queue.add(f"d{index}")
    assert await queue.times() == [NOON, NOON + DAY, NOON + 2 * DAY]


async def test_a_slot_time_nearer_than_the_notice_is_not_given(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.now = NOON - timedelta(seconds=59)
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON + DAY


async def test_a_slot_time_at_the_notice_is_given(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.now = NOON - timedelta(seconds=60)
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON


@pytest.mark.parametrize(("seconds", "is_filled"), [(-59, True), (59, True), (-60, False), (60, False)])
async def test_a_slot_within_a_minute_fills_a_slot_time(queue: "Queue", seconds: int, is_filled: bool) -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    await queue.at("d1", NOON + timedelta(seconds=seconds))
    [slot] = await queue.add("d2")
    assert (queue.time_of(slot) == NOON + DAY) is is_filled


async def test_a_full_day_is_skipped(queue: "Queue") -> None:
    hourly = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in (10, 14, 18)]
    await queue.put_schedule("page", *hourly, cap=2)
    for index in range(5):
        await queue.save_draft(f"d{index}", "page")
        await queue.add(f"d{index}")
    days = [moment.date() for moment in await queue.times()]
    assert days == [date(2026, 3, 2)] * 2 + [date(2026, 3, 3)] * 2 + [date(2026, 3, 4)]


async def test_exact_times_and_published_posts_count_towards_the_cap(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, cap=1)
    for draft in ("exact", "next"):
        await queue.save_draft(draft, "page")
    await queue.at("exact", START + timedelta(minutes=5))
    queue.now = START + timedelta(minutes=5)
    await queue.hand_over.dispatch()
    await queue.settle(queue.report(queue.stream.taken()[0], JobState.PUBLISHED))
    [slot] = await queue.add("next")
    assert queue.time_of(slot) == NOON + DAY


@pytest.mark.parametrize("end", [JobState.FAILED, JobState.MISSED, JobState.CANCELED])
async def test_an_unsent_post_frees_its_place_under_the_cap(queue: "Queue", end: JobState) -> None:
    await queue.put_schedule("page", WeeklySlot(day=1, hour=10, minute=0), *DAILY, cap=1)
    for draft in ("first", "second", "third"):
        await queue.save_draft(draft, "page")
    [first] = await queue.add("first")
    assert queue.time_of(first) == START.replace(hour=10)
    [second] = await queue.add("second")
    assert queue.time_of(second) == NOON + DAY
    queue.now = START.replace(hour=10)
    await queue.hand_over.dispatch()
    await queue.settle(queue.report(queue.stream.taken()[0], end))
    [third] = await queue.add("third")
    assert queue.time_of(third) == NOON


async def test_a_slot_that_ends_before_its_time_is_given_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for index in range(4):
        await queue.save_draft(f"d{index}", "page")
    slots = [(await queue.add(f"d{index}"))[0] for index in range(3)]
    await queue.settle(queue.report_on(slots[1], JobState.CANCELED))
    [again] = await queue.add("d3")
    assert queue.time_of(again) == NOON + DAY


async def test_all_accounts_get_a_slot_or_none_does(queue: "Queue") -> None:
    await queue.put_schedule("a", *DAILY)
    await queue.save_draft("d1", "a", "b")
    with pytest.raises(Refused) as refused:
        await queue.add("d1")
    assert refused.value.reason == "NO_SCHEDULE"
    assert refused.value.metadata == {"social_account_id": "b"}
    assert await queue.times() == []
    assert await queue.announced() == []
    await queue.put_schedule("b", WeeklySlot(day=2, hour=8, minute=30))
    slots = await queue.add("d1", "b", "a", "b")
    assert [slot.social_account_id for slot in slots] == ["b", "a"]
    assert [slot.id for slot in slots] == [event.slot_id for event in await queue.announced()]


async def test_without_accounts_all_accounts_of_the_draft_get_slots(queue: "Queue") -> None:
    for account in ("b", "a", "c"):
        await queue.put_schedule(account, *DAILY)
    await queue.save_draft("d1", "b", ("a", "linkedin_page", "7"), "c")
    assert [slot.social_account_id for slot in await queue.add("d1")] == ["a", "b", "c"]


async def test_the_blocking_slot_is_named(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.put_schedule("off", *DAILY, enabled=False)
    await queue.put_schedule("empty")
    await queue.save_draft("d1", "page", "off", "empty", "none")
    [slot] = await queue.add("d1", "page")
    with pytest.raises(NotFound) as missing:
        await queue.add("unknown")
    assert missing.value.reason == "DRAFT_NOT_FOUND"
    expected = {
        "page": ("ALREADY_QUEUED", {"queue_slot_id": slot.id, "schedule_time": "2026-03-02T12:00:00Z"}),
        "other": ("ACCOUNT_NOT_A_TARGET", {"draft_id": "d1"}),
        "off": ("SCHEDULE_DISABLED", {}),
        "none": ("NO_SCHEDULE", {}),
        "empty": ("HORIZON_EXHAUSTED", {}),
    }
    for account, (reason, metadata) in expected.items():
        with pytest.raises(Refused) as refused:
            await queue.add("d1", account)
        assert refused.value.reason == reason
        assert refused.value.metadata == {"social_account_id": account} | metadata


async def test_a_draft_that_ended_may_be_queued_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await queue.add("d1")
    queue.now = NOON
    await queue.hand_over.dispatch()
    await queue.settle(queue.report(queue.stream.taken()[0], JobState.FAILED))
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON + DAY


async def test_drafts_is_asked_about_a_draft_not_announced_yet(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    known = await queue.save_draft("known", "page", revision=2)
    queue.drafts.drafts["young"] = known.__class__(
        organization_id=known.organization_id, id="young", revision=5, targets=known.targets
    )
    await queue.add("young")
    await queue.add("known", "page")
    assert queue.drafts.asked == 1
    assert [row.content_revision for row in await queue.rows("select * from slot order by schedule_time")] == [5, 2]


async def test_a_repeated_request_gets_the_first_answer_in_spite_of_changes(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    queue.drafts.drafts["d1"] = await queue.save_draft("d0", "page")
    first = await queue.add("d1", request_id="r1")
    queue.drafts.drafts.clear()
    queue.schedule.slots.clear()
    assert await queue.add("d1", request_id="r1") == first
    assert await queue.times() == [NOON]
    with pytest.raises(InvalidField) as reused:
        await queue.add("d1", "page", request_id="r1")
    assert reused.value.reason == "REQUEST_ID_REUSED"


async def test_twenty_callers_at_once_get_twenty_times(queue: "Queue") -> None:
    await queue.put_schedule(
        "page", *[WeeklySlot(day=day, hour=12, minute=m) for day in range(7) for m in range(5)], cap=3
    )
    drafts = [f"d{index}" for index in range(20)]
    for draft in drafts:
        await queue.save_draft(draft, "page")
    async with asyncio.TaskGroup() as group:
        for draft in drafts:
            group.create_task(queue.add(draft))
    times = await queue.times()
    assert len(set(times)) == 20
    assert min(b - a for a, b in pairwise(times)) >= timedelta(minutes=1)
    days = [moment.date() for moment in times]
    assert [days.count(day) for day in sorted(set(days))] == [3] * 6 + [2]


async def test_callers_naming_accounts_in_any_order_do_not_deadlock(queue: "Queue") -> None:
    accounts = [f"a{index}" for index in range(6)]
    for account in accounts:
        await queue.put_schedule(account, *DAILY)
    for index in range(12):
        await queue.save_draft(f"d{index}", *accounts)
    async with asyncio.TaskGroup() as group:
        for index in range(12):
            shifted = accounts[index % 6 :] + accounts[: index % 6]
            group.create_task(queue.add(f"d{index}", *shifted))
    assert len(await queue.times()) == 72


async def test_the_same_request_sent_twice_at_once_is_carried_out_once(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(queue.add("d1", request_id="r1")) for _ in range(5)]
    assert len({call.result()[0].id for call in calls}) == 1
