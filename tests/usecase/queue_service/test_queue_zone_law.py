"""Slots follow the law of their zone: what stands where an older law put it goes where the law in force does."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from civil.zones import tzdata_version
from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_ZONE_DATA
from queue_service.application.follow_schedules import follow_schedules
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from queue_service.domain.slot import SPACING
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.usecase.queue_service.conftest import Queue, Statements

OURS, OLD, NEWER = tzdata_version(), "2020a", "2999a"
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
NOON = START.replace(hour=12)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def caught_up(queue: "Queue") -> None:
    for _ in range(100):
        if not await queue.catch_up():
            return
    raise AssertionError("there is no end to it")


async def announce_anew(queue: "Queue", account: str = "page", *, version: int = 2) -> None:
    """By the law in force: the schedule itself is what it was."""
    schedule = queue.schedule.schedules[account]
    queue.schedule.schedules[account] = replace(schedule, version=version)
    await queue.announce_schedule(account)


async def is_behind(queue: "Queue", account: str = "page") -> bool:
    [row] = await queue.rows(
        "select slots_behind from account_queue where social_account_id = :account", account=account
    )
    return bool(row.slots_behind)


async def queued(queue: "Queue", *drafts: str, slots: list[WeeklySlot] = DAILY) -> None:
    """By the law in force."""
    await queue.put_schedule("page", *slots)
    for draft in drafts:
        await queue.save_draft(draft, "page")
        await queue.add(draft)


async def test_a_slot_keeps_what_it_means_on_the_wall(queue: "Queue") -> None:
    queue.schedule.zone = "Europe/Berlin"
    queue.now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    await queue.put_schedule("page", WeeklySlot(day=0, hour=2, minute=30))
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    assert (queue.time_of(slot), slot.local_time) == (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "03:30")
    [row] = await queue.rows("select nominal_local_time, tzdata_version from slot")
    assert row == (datetime(2026, 3, 29, 2, 30), OURS)
    [announced] = await queue.announced()
    assert (announced.nominal_local_time, announced.time_zone) == ("2026-03-29T02:30", "Europe/Berlin")


async def test_a_time_of_the_callers_choice_means_an_instant(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await queue.at("d1", NOON)
    [row] = await queue.rows("select nominal_local_time, tzdata_version from slot")
    assert row == (None, OURS)
    [announced] = await queue.announced()
    assert announced.nominal_local_time == ""


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_slots_move_when_schedule_tells_of_another_law(queue: "Queue", shift: timedelta) -> None:
    await queued(queue, "d0", "d1", "d2")
    await queue.outdate("page", shift)
    before = {row.id: row.schedule_time for row in await queue.rows("select id, schedule_time from slot")}
    await announce_anew(queue)
    await caught_up(queue)

    rows = await queue.rows("select * from slot order by schedule_time")
    assert [row.schedule_time for row in rows] == [NOON, NOON + DAY, NOON + 2 * DAY]
    for row in rows:
        assert (row.revision, row.tzdata_version, row.local_time) == (2, OURS, time(12))
        assert row.local_date == row.schedule_time.date()
        assert row.not_after == row.schedule_time + timedelta(hours=24)
        assert row.update_time == queue.now
    moves = await queue.moves()
    assert {each.slot_id: each.previous_schedule_time.ToDatetime(UTC) for each in moves} == before
    for row, move in zip(rows, sorted(moves, key=lambda each: each.schedule_time.ToDatetime()), strict=True):
        assert (move.organization_id, move.slot_id, move.revision) == ("acme", row.id, 2)
        assert (move.draft_id, move.social_account_id) == (row.draft_id, "page")
        assert [(each.channel, each.social_account_id) for each in move.targets] == [("facebook", "page")]
        assert move.schedule_time.ToDatetime(UTC) == row.schedule_time
        assert (move.time_zone, move.nominal_local_time) == ("UTC", f"{row.schedule_time:%Y-%m-%dT%H:%M}")
        assert move.reason == SLOT_MOVE_REASON_ZONE_DATA
    [account] = await queue.rows("select * from account_queue")
    assert (account.next_due_time, account.slots_behind, account.tzdata_version) == (NOON, False, OURS)
    assert not await queue.catch_up()


@pytest.mark.parametrize("shift", [HOUR, -HOUR, 3 * HOUR])
async def test_five_hundred_hourly_slots_move_onto_each_others_places_in_as_many_statements_as_two(
    queue: "Queue", statements: "Statements", shift: timedelta
) -> None:
    await queue.put_schedule("page", *HOURLY)
    first = NOON + DAY
    costs = []
    for count in (2, 500):
        await queue.fill_weekly("page", first, HOUR, count)
        await queue.outdate("page", shift)
        await announce_anew(queue)
        statements.clear()
        assert await queue.catch_up()
        costs.append(len(statements.texts))
        assert await queue.times() == [first + number * HOUR for number in range(count)]
        assert len(await queue.moves()) == count
        async with queue.database.transaction() as tx:
            await tx.connection.execute(text("truncate slot, slot_target, outbox"))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_more_slots_than_one_statement_takes_move_onto_each_others_places(
    queue: "Queue", shift: timedelta
) -> None:
    await queue.put_schedule("page", *HOURLY)
    await queue.fill_weekly("page", NOON + DAY, HOUR, 1100)
    await queue.outdate("page", shift)
    await announce_anew(queue)
    await caught_up(queue)
    assert await queue.times() == [NOON + DAY + number * HOUR for number in range(1100)]
    moves = await queue.moves()
    assert len(moves) == len({move.slot_id for move in moves}) == 1100


async def test_many_accounts_are_brought_up_some_at_a_time(queue: "Queue") -> None:
    accounts = [f"page-{number:02}" for number in range(25)]
    for account in accounts:
        await queue.put_schedule(account, *HOURLY)
    await queue.fill_weekly(accounts, NOON, HOUR, 3)
    for account in accounts:
        await queue.outdate(account, HOUR)
        await announce_anew(queue, account)
    steps = [await queue.catch_up() for _ in range(4)]
    assert steps == [True, True, True, False]
    assert await queue.times() == sorted([NOON, NOON + HOUR, NOON + 2 * HOUR] * 25)


async def test_a_batch_with_an_older_law_behind_a_newer_one_keeps_the_newer(queue: "Queue") -> None:
    """While Schedule is being replaced, an old process of it may be the last to save a schedule."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    schedule = queue.schedule.schedules["page"]
    await queue.apply(
        follow_schedules,
        replace(schedule, version=2, tzdata_version=OURS),
        replace(schedule, version=3, tzdata_version=OLD, max_posts_per_day=5),
    )
    await caught_up(queue)
    assert await queue.times() == [NOON]
    await queue.announce_schedule("page", version=1, tzdata_version=OURS)
    [row] = await queue.rows("select schedule_version, max_posts_per_day, tzdata_version from account_queue")
    assert row == (3, 5, OURS)


async def test_news_of_a_law_count_also_when_the_schedule_is_known_better(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await queue.announce_schedule("page", version=3, tzdata_version=OLD, max_posts_per_day=5)
    assert not await is_behind(queue)
    await queue.announce_schedule("page", version=2, tzdata_version=OURS)
    assert await is_behind(queue)
    [row] = await queue.rows("select schedule_version, max_posts_per_day, tzdata_version from account_queue")
    assert row == (3, 5, OURS)


async def test_only_the_law_moves_a_slot(queue: "Queue") -> None:
    await queued(queue, "d1")
    queue.schedule.zone = "Asia/Tokyo"
    await queue.put_schedule("page", WeeklySlot(day=3, hour=8, minute=0), version=2, cap=1)
    assert not await is_behind(queue)
    assert not await queue.catch_up()
    # Also when both change: the slot is meant for noon in UTC, where it was made.
    await queue.outdate("page", HOUR)
    await announce_anew(queue, version=3)
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [row] = await queue.rows("select time_zone, local_time from slot")
    assert row == ("UTC", time(12))


async def test_a_law_that_moves_nothing_is_noted_and_nobody_is_told(queue: "Queue") -> None:
    await queued(queue, "d1", "d2")
    await queue.outdate("page", timedelta(0))
    queue.now += timedelta(minutes=1)
    await announce_anew(queue)
    await caught_up(queue)
    for row in await queue.rows("select revision, tzdata_version, update_time from slot"):
        assert row == (1, OURS, START)
    assert await queue.moves() == []


async def test_slots_of_the_release_before_mean_what_their_wall_shows(queue: "Queue") -> None:
    await queued(queue, "d1")
    async with queue.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                update slot set nominal_local_time = null, tzdata_version = null,
                    schedule_time = schedule_time + interval '1 hour', not_after = not_after + interval '1 hour'
            """)
        )
        await tx.connection.execute(text("update account_queue set tzdata_version = ''"))
    await announce_anew(queue)
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, nominal_local_time, revision from slot")
    assert row == (NOON, NOON.replace(tzinfo=None), 2)


async def test_a_release_that_this_process_does_not_have_waits_for_one_that_has_it(queue: "Queue") -> None:
    for account in ("page", "other"):
        await queue.put_schedule(account, *DAILY)
        await queue.fill_weekly(account, NOON, DAY, 2)
        await queue.outdate(account, HOUR)
    await queue.put_schedule("page", *DAILY, version=2, announce=False)
    await queue.announce_schedule("page", tzdata_version=NEWER, max_posts_per_day=1)
    await announce_anew(queue, "other")
    await caught_up(queue)
    stands = {row.social_account_id: row.at for row in await queue.rows(FIRST_OF_EACH)}
    assert stands == {"page": NOON + HOUR, "other": NOON}
    assert await is_behind(queue)
    [known] = await queue.rows("select * from account_queue where social_account_id = 'page'")
    assert (known.schedule_version, known.max_posts_per_day) == (2, 1)  # nothing else has to wait
    await queue.save_draft("d1", "page")
    await queue.add("d1")

    assert await queue.catching_up(NEWER)()
    stands = {row.social_account_id: row.at for row in await queue.rows(FIRST_OF_EACH)}
    assert stands == {"page": NOON, "other": NOON}
    assert not await is_behind(queue)


FIRST_OF_EACH = "select social_account_id, min(schedule_time) as at from slot group by social_account_id"


async def test_an_announcement_by_a_law_older_than_ours_moves_what_is_older_still(queue: "Queue") -> None:
    """Between its law and ours nothing may have changed for this zone: then no newer announcement would come."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR, release="2020a")
    await queue.announce_schedule("page", version=2, tzdata_version="2021a")
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, tzdata_version from slot")
    assert row == (NOON, OURS)


async def test_an_announcement_by_a_law_older_than_the_slots_moves_nothing(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.announce_schedule("page", version=2, tzdata_version=OLD)
    assert not await is_behind(queue)
    assert not await queue.catch_up()
    [row] = await queue.rows("select schedule_version, tzdata_version from account_queue")
    assert row == (2, OURS)  # and what comes by the older law again is known to be out of date


async def test_the_slots_of_a_deleted_schedule_follow_the_law_too(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    schedule = queue.schedule.schedules["page"]
    queue.schedule.schedules["page"] = replace(schedule, tzdata_version=OURS)
    await queue.delete_schedule("page", version=2)
    await caught_up(queue)
    assert await queue.times() == [NOON]


async def test_what_is_handed_over_stays_and_what_was_chosen_stays(queue: "Queue") -> None:
    await queued(queue, "d0", "d1")
    await queue.save_draft("chosen", "page")
    await queue.at("chosen", NOON + DAY + timedelta(hours=5))
    await queue.outdate("page", HOUR)
    queue.now = NOON + HOUR - timedelta(seconds=20)
    await queue.hand_over.dispatch()
    await announce_anew(queue)
    await caught_up(queue)
    rows = await queue.rows("select draft_id, state, schedule_time, revision from slot order by schedule_time")
    assert rows == [
        ("d0", "DISPATCHED", NOON + HOUR, 1),
        ("d1", "SCHEDULED", NOON + DAY, 2),
        ("chosen", "SCHEDULED", NOON + DAY + timedelta(hours=5), 1),
    ]
    assert [move.draft_id for move in await queue.moves()] == ["d1"]


async def test_what_is_handed_over_stands_in_the_way(queue: "Queue") -> None:
    await queued(queue, "d0", "d1", "d2", slots=HOURLY)
    [first, *_] = await queue.times()
    await queue.outdate("page", HOUR)
    queue.now = first + HOUR - timedelta(seconds=20)
    await queue.hand_over.dispatch()
    await announce_anew(queue)
    await caught_up(queue)
    rows = await queue.rows("select draft_id, state, schedule_time from slot order by schedule_time")
    assert rows == [
        ("d0", "DISPATCHED", first + HOUR),
        ("d1", "SCHEDULED", first + HOUR + SPACING),
        ("d2", "SCHEDULED", first + 2 * HOUR),
    ]


async def test_a_taken_time_is_left_to_its_owner_and_cried_out(
    queue: "Queue", caplog: pytest.LogCaptureFixture
) -> None:
    await queued(queue, "d1")
    await queue.save_draft("chosen", "page")
    await queue.outdate("page", HOUR)
    await queue.at("chosen", NOON + SPACING / 2)
    await announce_anew(queue)
    with caplog.at_level(logging.WARNING, logger="queue_service"):
        await caught_up(queue)
    rows = await queue.rows("select draft_id, schedule_time, revision, tzdata_version from slot order by 2")
    assert rows == [("chosen", NOON + SPACING / 2, 1, OURS), ("d1", NOON + HOUR, 1, OURS)]
    [record] = caplog.records
    assert "page" in record.message
    assert "another slot has that time" in record.message
    assert await queue.moves() == []
    assert not await is_behind(queue)


@pytest.mark.parametrize("origin", ["QUEUE", "EXACT"])
async def test_a_slot_in_a_zone_that_is_no_more_stays_and_holds_up_no_other(
    queue: "Queue", caplog: pytest.LogCaptureFixture, origin: str
) -> None:
    await queued(queue, "d1", "d2")
    await queue.outdate("page", HOUR)
    async with queue.database.transaction() as tx:
        gone = """
            update slot set time_zone = 'US/Pacific-New', origin = :origin,
                nominal_local_time = case when :origin = 'QUEUE' then nominal_local_time end
            where draft_id = 'd1'
        """
        await tx.connection.execute(text(gone), {"origin": origin})
    await announce_anew(queue)
    with caplog.at_level(logging.WARNING, logger="queue_service"):
        await caught_up(queue)
    rows = await queue.rows("select draft_id, schedule_time, local_time, revision from slot order by schedule_time")
    assert rows == [("d1", NOON + HOUR, time(12), 1), ("d2", NOON + DAY, time(12), 2)]
    assert not await is_behind(queue)
    assert ["no such zone" in record.message for record in caplog.records] == [True] * (origin == "QUEUE")


async def test_a_time_that_is_over_is_made_up_for_after_the_notice(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    queue.now = NOON + timedelta(minutes=10)
    await announce_anew(queue)
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, not_after, local_time from slot")
    goes_out = queue.now + Policy().notice
    assert row == (goes_out, goes_out + timedelta(hours=24), time(12, 11))
    queue.now = goes_out - Policy().lead
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.revision, command.schedule_time) == (2, goes_out)


async def test_a_moved_slot_is_handed_over_at_its_new_time_only(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", -HOUR)
    await announce_anew(queue)
    await caught_up(queue)
    queue.now = NOON - HOUR
    assert not await queue.hand_over.dispatch()
    assert queue.stream.taken() == []
    queue.now = NOON
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.revision, command.schedule_time, command.not_after) == (2, NOON, NOON + DAY)


async def test_an_answer_about_the_old_time_is_none(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    await queue.outdate("page", HOUR)
    await announce_anew(queue)
    await caught_up(queue)
    await queue.settle(queue.report_on(slot, JobState.CANCELED, version=3))
    assert await queue.states() == {"d1": "SCHEDULED"}
    await queue.settle(queue.report_on(slot, JobState.CANCELED, version=4, slot_revision=2))
    assert await queue.states() == {"d1": "CANCELED"}


async def test_the_times_that_slots_have_left_are_free_again(queue: "Queue") -> None:
    await queued(queue, *(f"d{number}" for number in range(5)))
    await queue.outdate("page", 2 * DAY)
    await announce_anew(queue)
    await queue.save_draft("next", "page")
    await queue.add("next")
    await caught_up(queue)
    assert await queue.times() == [NOON + number * DAY for number in range(6)]


async def test_what_a_search_has_learned_among_slots_that_then_move_is_forgotten(queue: "Queue") -> None:
    """The search was a process's that does not have the release by which they move."""
    await queued(queue, *(f"d{number}" for number in range(5)))
    await queue.outdate("page", 2 * DAY)
    queue.schedule.release = NEWER
    await announce_anew(queue)
    for draft in ("x", "y", "z", "next"):
        await queue.save_draft(draft, "page")
    taken = [queue.time_of((await queue.add(draft))[0]) for draft in ("x", "y", "z")]
    assert taken == [NOON, NOON + DAY, NOON + 7 * DAY]
    queue.schedule.release = NEWER
    assert await queue.catching_up(NEWER)()
    [slot] = await queue.add("next")
    assert queue.time_of(slot) == NOON + 5 * DAY


async def test_slots_move_before_another_is_added_among_them(queue: "Queue") -> None:
    """Schedule answers by the new law, nothing has been announced: noon is not free, though nothing stands there."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await queue.save_draft("d2", "page")
    queue.now += timedelta(seconds=1)
    [slot] = await queue.add("d2")
    assert queue.time_of(slot) == NOON + DAY
    rows = await queue.rows("select draft_id, schedule_time, revision from slot order by schedule_time")
    assert rows == [("d1", NOON, 2), ("d2", NOON + DAY, 1)]
    assert [move.draft_id for move in await queue.moves()] == ["d1"]
    assert not await is_behind(queue)


async def test_slots_move_before_a_time_of_the_callers_choice_is_given_among_them(queue: "Queue") -> None:
    """Noon is free only as long as the slot that is meant for it has not moved."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await announce_anew(queue)
    await queue.save_draft("chosen", "page")
    with pytest.raises(Refused) as refusal:
        await queue.at("chosen", NOON)
    assert refusal.value.reason == "SLOT_TAKEN"
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [slot] = await queue.at("chosen", NOON + HOUR)
    assert queue.time_of(slot) == NOON + HOUR


async def test_a_slot_given_by_a_law_that_is_out_of_date_already_is_put_right(queue: "Queue") -> None:
    """One process of Schedule is still of the release before."""
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.schedule.release, queue.schedule.shift = OLD, HOUR
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON + HOUR
    assert await is_behind(queue)
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [row] = await queue.rows("select tzdata_version from account_queue")
    assert row.tzdata_version == OURS


async def test_a_slot_given_by_a_law_that_this_process_does_not_have_is_looked_at_by_one_that_has_it(
    queue: "Queue",
) -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.schedule.release = NEWER
    await queue.add("d1")
    [row] = await queue.rows("select schedule_time, tzdata_version from slot")
    assert row == (NOON, OURS)
    assert not await queue.catch_up()
    assert await is_behind(queue)
    assert await queue.catching_up(NEWER)()
    [row] = await queue.rows("select schedule_time, tzdata_version, revision from slot")
    assert row == (NOON, NEWER, 1)
    assert await queue.moves() == []


async def test_two_processes_move_each_slot_once(make_queue: "Callable[[Policy], Queue]") -> None:
    one, other = make_queue(Policy()), make_queue(Policy())
    accounts = [f"page-{number:02}" for number in range(30)]
    for account in accounts:
        await one.put_schedule(account, *HOURLY)
    await one.fill_weekly(accounts, NOON, HOUR, 20)
    for account in accounts:
        await one.outdate(account, HOUR)
        await announce_anew(one, account)
        await one.save_draft(f"new-{account}", account)
    other.schedule = one.schedule
    async with asyncio.TaskGroup() as group:
        for queue in (one, other):
            group.create_task(caught_up(queue))
            group.create_task(caught_up(queue))
        for account in accounts:
            group.create_task(one.add(f"new-{account}"))
    moves = await one.moves()
    assert len(moves) == len({move.slot_id for move in moves}) == 600
    assert {move.revision for move in moves} == {2}
    expected = [NOON + number * HOUR for number in range(20)]
    for account in accounts:
        rows = await one.rows(
            "select schedule_time from slot where social_account_id = :account and draft_id not like 'new%' order by 1",
            account=account,
        )
        assert [row.schedule_time for row in rows] == expected


async def test_moving_handing_over_settling_and_adding_at_once_end_without_a_deadlock(
    make_queue: "Callable[[Policy], Queue]",
) -> None:
    queue = make_queue(Policy(per_account=1))
    accounts = [f"page-{number}" for number in range(6)]
    for account in accounts:
        await queue.put_schedule(account, *HOURLY)
    await queue.fill_weekly(accounts, NOON, timedelta(minutes=5), 40)
    queue.now = NOON + HOUR

    async def hand_over() -> None:
        for _ in range(20):
            await queue.hand_over.dispatch()
            taken = queue.stream.taken()
            states = (JobState.FAILED, JobState.PUBLISHED, JobState.CANCELED)
            await queue.settle(*(queue.report(each, states[n % 3]) for n, each in enumerate(taken)))

    async def announce() -> None:
        for number in range(10):
            for account in accounts:
                await queue.announce_schedule(account, version=number + 2, tzdata_version=f"{2030 + number}a")
            await queue.catching_up("2999a")()

    async with asyncio.TaskGroup() as group:
        group.create_task(hand_over())
        group.create_task(announce())
        group.create_task(hand_over())
    queue.catch_up = queue.catching_up("2999a")
    await caught_up(queue)
    for account in accounts:
        assert not await is_behind(queue, account)
    waiting = await queue.rows(
        "select social_account_id, min(schedule_time) as at from slot where state = 'SCHEDULED' group by 1"
    )
    due = await queue.rows("select social_account_id, next_due_time from account_queue")
    known = {row.social_account_id: row.next_due_time for row in due}
    for row in waiting:
        assert known[row.social_account_id] is not None
        assert known[row.social_account_id] <= row.at
