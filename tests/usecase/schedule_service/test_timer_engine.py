"""Due timers of a real database: what fires, when, how often, and who may not."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.cron import Dst
from civil.zones import find_zone, tzdata_version, zone_data, zone_from_data
from jobkit.errors import InvalidJob, LateWrite, OccurrenceSkipped
from jobkit.job import Done, Job, JobUpdate
from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_ACTIVE,
    TIMER_STATE_FAULTY,
    TIMER_STATE_FINISHED,
    TIMER_STATE_PAUSED,
)
from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.timer import MisfirePolicy, TimerState, rescheduled
from schedule_service.engine.batch import BatchHandler
from schedule_service.engine.timer_engine import TimerJobs
from servicekit.faults import NotFound, Refused
from servicekit.pg.database import Database
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.conftest import Timers

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def lock_all(timers: "Timers", replica: TimerJobs) -> list[Job]:
    """As a worker that then stalls: the locks last for ten seconds."""
    now = timers.clock.moment
    jobs = await replica.store.lock_next(now, now + timedelta(seconds=10), 100)
    assert await replica.handler(jobs) == [Done()] * len(jobs)
    return jobs


async def settle(replica: TimerJobs, jobs: Sequence[Job]) -> set[object]:
    """As a worker that has come to again; the ids of the timers that it could still write."""
    next_year = START + 365 * DAY
    update = JobUpdate(due_time=next_year, sleep_until=next_year, attempts=0, last_error=None)
    return {lock.id for lock in await replica.store.update([(job.lock, update) for job in jobs])}


async def test_a_due_timer_fires_once_and_is_finished(timers: "Timers") -> None:
    await timers.create(fire_time=START + HOUR, payload=b"p")
    assert await timers.fire_due() == []
    timers.clock.moment += HOUR
    assert await timers.fire_due() == ["2026-03-02T10:00:00Z"]
    (event,) = timers.fired.events
    assert (event.organization_id, event.timer_id, event.topic) == ("acme", "t", "drafts.generate")
    assert (event.payload, event.manual) == (b"p", False)
    assert event.due_time.ToDatetime(UTC) == START + HOUR
    assert START + HOUR < event.fire_time.ToDatetime(UTC) < START + HOUR + timedelta(seconds=1)
    finished = await timers.get()
    assert (finished.state, finished.fire_count) == (TIMER_STATE_FINISHED, 1)
    assert finished.last_occurrence_key == event.occurrence_key
    assert finished.last_fire_time == event.fire_time
    assert not finished.HasField("next_fire_time")
    assert finished.fire_time == event.due_time
    assert await timers.fire_due() == []


async def test_a_timer_whose_time_had_passed_fires_at_once(timers: "Timers") -> None:
    await timers.create(fire_time=at("2020-01-01T00:00"))
    assert await timers.fire_due() == ["2020-01-01T00:00:00Z"]


async def test_a_recurring_timer_fires_at_each_of_its_local_times(timers: "Timers") -> None:
    made = await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    timers.clock.moment = at("2026-03-07T14:00")
    assert await timers.fire_due() == ["2026-03-02T09:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-08T13:00")
    timers.clock.moment = at("2026-03-08T13:00")
    assert await timers.fire_due() == ["2026-03-08T09:00"]
    after = await timers.get()
    assert (after.state, after.fire_count, after.etag) == (TIMER_STATE_ACTIVE, 2, made.etag)


async def test_both_passes_of_an_overlap_fire_under_keys_of_their_own(timers: "Timers") -> None:
    timers.clock.moment = at("2026-11-01T00:00")
    await timers.create("cron", cron="30 1 * * *", time_zone=NEW_YORK)
    await timers.create("once", cron="30 1 * * *", time_zone=NEW_YORK, dst_policy=Dst.ONCE)
    timers.clock.moment = at("2026-11-01T05:30")
    assert await timers.fire_due() == ["2026-11-01T01:30", "2026-11-01T01:30"]
    timers.clock.moment = at("2026-11-01T06:30")
    assert await timers.fire_due() == ["2026-11-01T01:30/2"]


async def test_an_interval_keeps_its_step(timers: "Timers") -> None:
    await timers.create(cron="@every 90s")
    timers.clock.moment = START + timedelta(seconds=200)
    assert await timers.fire_due() == ["2026-03-02T09:01:30Z"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == START + timedelta(seconds=270)


async def test_the_oldest_fires_first(timers: "Timers") -> None:
    for minutes in (3, 1, 2):
        await timers.create(f"t{minutes}", fire_time=START + timedelta(minutes=minutes))
    timers.clock.moment += HOUR
    assert await timers.fire_due(batch=2) == [f"2026-03-02T09:0{minutes}:00Z" for minutes in (1, 2, 3)]


async def test_a_rush_of_one_organization_does_not_hold_up_another(timers: "Timers") -> None:
    for number in range(30):
        await timers.create(f"t{number:02}", fire_time=START + timedelta(seconds=number))
    await timers.create("single", organization_id="umbrella", fire_time=START + timedelta(minutes=1))
    timers.clock.moment += HOUR
    await timers.fire_due(batch=5)
    fired = [event.timer_id for event in timers.fired.events]
    assert fired.index("single") < 10
    # Nobody is passed over, and among their own they keep their order.
    assert [each for each in fired if each != "single"] == [f"t{number:02}" for number in range(30)]


async def test_in_a_rush_of_all_each_organization_gets_its_share(timers: "Timers") -> None:
    organizations = ("acme", "umbrella", "initech")
    for place, organization_id in enumerate(organizations):
        for number in range(20):
            due = START + timedelta(minutes=place, seconds=number)
            await timers.create(f"t{number}", organization_id=organization_id, fire_time=due)
    timers.clock.moment += HOUR
    await timers.fire_due(batch=6)
    second = [event.organization_id for event in timers.fired.events][6:12]
    assert second == [organization_id for organization_id in organizations for _ in range(2)]
    assert len(timers.fired.events) == 60


async def test_two_engines_share_a_rush(timers: "Timers") -> None:
    for number in range(40):
        await timers.create(f"t{number}", organization_id=f"o{number % 3}", fire_time=START)
    timers.clock.moment += HOUR
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(timers.fire_due(batch=3))
    assert len(timers.fired.events) == 40
    assert len({(event.organization_id, event.timer_id) for event in timers.fired.events}) == 40


async def test_one_firing_stands_for_all_that_passed(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T15:30")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-02T16:00")


async def test_what_is_too_late_is_skipped(timers: "Timers") -> None:
    await timers.create(
        cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP, skip_after=timedelta(minutes=5), time_zone=NEW_YORK
    )
    timers.clock.moment = at("2026-03-02T10:04:59")
    assert await timers.fire_due() == ["2026-03-02T05:00"]
    timers.clock.moment = at("2026-03-02T15:30")
    assert await timers.fire_due() == []
    assert [type(error) for error in timers.errors] == [OccurrenceSkipped]
    after = await timers.get()
    assert (after.fire_count, after.last_occurrence_key) == (1, "2026-03-02T05:00")
    assert after.next_fire_time.ToDatetime(UTC) == at("2026-03-02T16:00")


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_what_a_dead_worker_had_in_hand_is_skipped_as_well(timers: "Timers", auto_remove: bool) -> None:
    await timers.create("recurring", cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP)
    await timers.create("single", delay=HOUR, misfire_policy=MisfirePolicy.SKIP, auto_remove=auto_remove)
    timers.clock.moment = at("2026-03-02T10:00:01")
    assert len(await lock_all(timers, timers.jobs())) == 2
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == []
    after = await timers.get("recurring")
    assert (after.fire_count, after.last_occurrence_key) == (0, "")
    assert after.next_fire_time.ToDatetime(UTC) == at("2026-03-02T13:00")


async def test_a_worker_that_stood_still_skips_what_has_become_too_late(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP, skip_after=timedelta(seconds=5))
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    timers.clock.moment = at("2026-03-02T10:00:06")
    assert len(await settle(replica, jobs)) == 1
    assert timers.fired.keys == []


async def test_a_single_time_that_is_too_late_finishes_the_timer(timers: "Timers") -> None:
    await timers.create(delay=HOUR, misfire_policy=MisfirePolicy.SKIP)
    timers.clock.moment += 2 * HOUR
    assert await timers.fire_due() == []
    after = await timers.get()
    assert (after.state, after.fire_count) == (TIMER_STATE_FINISHED, 0)


async def test_all_that_passed_fires_in_order_and_paced(timers: "Timers") -> None:
    await timers.create(
        cron="0 * * * *", misfire_policy=MisfirePolicy.FIRE_ALL, catch_up_interval=timedelta(seconds=30)
    )
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    assert await timers.fire_due() == []
    timers.clock.moment += timedelta(seconds=30)
    assert await timers.fire_due() == ["2026-03-02T11:00"]
    timers.clock.moment += timedelta(seconds=30)
    assert await timers.fire_due() == ["2026-03-02T12:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-02T13:00")


async def test_without_a_pace_what_passed_fires_at_once(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", misfire_policy=MisfirePolicy.FIRE_ALL, catch_up_interval=timedelta(0))
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == [f"2026-03-02T{hour}:00" for hour in (10, 11, 12)]


async def test_nothing_fires_after_the_end_of_the_repetition(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", repeat_until=at("2026-03-02T11:00"), misfire_policy=MisfirePolicy.FIRE_ALL)
    for hour in (10, 11, 12, 13):
        timers.clock.moment = at(f"2026-03-02T{hour}:00")
        await timers.fire_due()
    assert timers.fired.keys == ["2026-03-02T10:00", "2026-03-02T11:00"]
    assert (await timers.get()).state == TIMER_STATE_FINISHED


async def test_a_timer_that_removes_itself_is_gone_after_its_last_firing(timers: "Timers") -> None:
    await timers.create("once", delay=timedelta(0), auto_remove=True, payload=b"p")
    await timers.create("twice", cron="0 * * * *", repeat_until=at("2026-03-02T11:00"), auto_remove=True)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    assert {event.timer_id: event.payload for event in timers.fired.events} == {"once": b"p", "twice": b""}
    assert (await timers.get("twice")).state == TIMER_STATE_ACTIVE
    timers.clock.moment = at("2026-03-02T11:00")
    assert await timers.fire_due() == ["2026-03-02T11:00"]
    for timer_id in ("once", "twice"):
        with pytest.raises(NotFound):
            await timers.get(timer_id)


async def test_a_finished_timer_is_kept_for_a_week(timers: "Timers") -> None:
    await timers.create("first", delay=timedelta(0))
    await timers.create("going", cron="@daily", repeat_until=at("2030-01-01T00:00"))
    await timers.fire_due()
    timers.clock.moment += 7 * DAY
    await timers.create("second", delay=timedelta(0))
    await timers.fire_due()
    assert not await timers.delete_finished()
    timers.clock.moment += timedelta(minutes=1)
    assert not await timers.delete_finished()
    with pytest.raises(NotFound):
        await timers.get("first")
    assert (await timers.get("second")).state == TIMER_STATE_FINISHED
    assert (await timers.get("going")).state == TIMER_STATE_ACTIVE


async def test_a_paused_timer_does_not_fire_and_goes_on_by_its_policy(timers: "Timers") -> None:
    for policy in MisfirePolicy:
        await timers.create(policy, topic=policy.lower(), cron="0 * * * *", misfire_policy=policy)
        await timers.pause(policy)
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == []
    for policy in MisfirePolicy:
        resumed = await timers.resume(policy)
        assert resumed.next_fire_time.ToDatetime(UTC) == at("2026-03-02T10:00")
    assert timers.woken[-1] < timedelta(0)
    for _ in range(4):
        await timers.fire_due()
        timers.clock.moment += timedelta(seconds=1)
    fired = [(event.topic, event.occurrence_key[-5:]) for event in timers.fired.events]
    assert sorted(fired) == [
        ("fire_all", "10:00"),
        ("fire_all", "11:00"),
        ("fire_all", "12:00"),
        ("fire_once", "10:00"),
    ]


async def test_a_pause_before_the_firing_is_written_prevents_it(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    resting = await timers.pause()
    assert await settle(replica, jobs) == set()
    assert timers.fired.keys == []
    assert await timers.get() == resting
    assert resting.state == TIMER_STATE_PAUSED
    await timers.resume()
    assert await timers.fire_due() == ["2026-03-02T10:00"]


async def test_a_pause_after_the_firing_was_written_finds_the_next_occurrence(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    resting = await timers.pause()
    assert resting.next_fire_time.ToDatetime(UTC) == at("2026-03-02T11:00")
    await timers.resume()
    assert await timers.fire_due() == []
    assert (await timers.get()).fire_count == 1


async def test_what_is_deleted_in_the_hands_of_the_engine_fires_no_more(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    await timers.create("gone", delay=timedelta(0), auto_remove=True)
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    await timers.delete()
    await timers.delete("gone")
    assert await settle(replica, jobs) == set()
    assert await replica.store.remove([job.lock for job in jobs]) == frozenset()
    assert timers.fired.keys == []


async def test_a_timer_that_removes_itself_stays_when_it_is_paused_in_time(timers: "Timers") -> None:
    await timers.create(delay=timedelta(0), auto_remove=True)
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    resting = await timers.pause()
    assert await replica.store.remove([job.lock for job in jobs]) == frozenset()
    assert timers.fired.keys == []
    assert await timers.get() == resting


async def test_a_firing_by_hand_in_between_does_not_disturb_the_one_in_hand(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    await timers.fire(request_id="r")
    assert len(await settle(replica, jobs)) == 1
    assert timers.fired.keys == ["manual/r", "2026-03-02T10:00"]
    assert (await timers.get()).fire_count == 2


async def test_a_worker_that_died_has_fired_nothing_and_another_takes_over(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    dead = timers.jobs()
    jobs = await lock_all(timers, dead)
    assert timers.fired.keys == []
    timers.clock.moment += timedelta(seconds=9)
    assert await timers.fire_due() == []
    timers.clock.moment += timedelta(seconds=1)
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    # It was not dead after all.
    assert await settle(dead, jobs) == set()
    assert timers.fired.keys == ["2026-03-02T10:00"]
    assert (await timers.get()).fire_count == 1


async def test_a_write_that_was_committed_without_anybody_knowing_is_not_repeated(timers: "Timers") -> None:
    await timers.create("recurring", cron="0 * * * *")
    await timers.create("single", delay=HOUR)
    timers.clock.moment = at("2026-03-02T10:00:30")
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    assert len(await settle(replica, jobs)) == 2
    assert await settle(replica, jobs) == set()
    assert len(timers.fired.keys) == 2


async def test_an_extension_that_was_under_way_does_not_wake_what_has_been_settled(timers: "Timers") -> None:
    await timers.create("going", cron="0 * * * *")
    await timers.create("finished", delay=HOUR)
    timers.clock.moment = at("2026-03-02T10:00:01")
    replica = timers.jobs()
    (going, finished) = jobs = await lock_all(timers, replica)
    end = JobUpdate(due_time=None, sleep_until=None, attempts=0, last_error=None, finish_time=timers.clock.moment)
    assert await settle(replica, [going]) == {going.id}
    assert await replica.store.update([(finished.lock, end)]) == {finished.lock}
    assert await replica.store.extend([job.lock for job in jobs], timers.clock.moment) == frozenset()
    assert await timers.fire_due() == []


async def test_a_clock_that_goes_back_repeats_no_occurrence(timers: "Timers") -> None:
    for policy in MisfirePolicy:
        await timers.create(policy, cron="0 * * * *", misfire_policy=policy)
    for moment, keys in (("10:00", ["10:00"] * 3), ("09:30", []), ("10:30", []), ("11:00", ["11:00"] * 3)):
        timers.clock.moment = at(f"2026-03-02T{moment}")
        assert [key[-5:] for key in await timers.fire_due()] == keys


async def test_a_failed_transaction_leaves_no_trace_and_is_repeated(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    async with timers.database.statement() as connection:
        await connection.execute(text("alter table outbox rename to away"))
    replica = timers.jobs()
    jobs = await lock_all(timers, replica)
    with pytest.raises(Exception, match="outbox"):
        await settle(replica, jobs)
    assert (await timers.get()).fire_count == 0
    async with timers.database.statement() as connection:
        await connection.execute(text("alter table away rename to outbox"))
    timers.clock.moment += timedelta(seconds=10)
    assert await timers.fire_due() == ["2026-03-02T10:00"]


async def test_a_late_write_is_told(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")

    class Pausing(BatchHandler):
        async def __call__(self, jobs: Sequence[Job]) -> list[Done]:
            await timers.pause()
            return await super().__call__(jobs)

    replica = timers.jobs()
    replica = replica._replace(handler=Pausing(replica.handler._occurrences, replica.handler._batch))
    assert await timers.fire_due(replica) == []
    assert [type(error) for error in timers.errors] == [LateWrite]


async def follows_an_older_law(database: Database, law: bytes, due: datetime) -> None:
    """The timer as a release with that law left it."""
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("insert into zone_data values ('2020a', :zone, :law)"), {"zone": NEW_YORK, "law": law}
        )
        await tx.connection.execute(
            text("update timer set tzdata_version = '2020a', due_time = :due, sleep_until = :due"), {"due": due}
        )


@pytest.mark.parametrize("by_hand", [False, True])
async def test_an_occurrence_that_moves_to_later_is_not_fired_twice(timers: "Timers", by_hand: bool) -> None:
    # Under the older law New York is on the time of Halifax, one hour ahead.
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    await follows_an_older_law(timers.database, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    assert await timers.fire_due() == ["2026-03-03T09:00"]
    after = await timers.get()
    assert (after.tzdata_version, after.next_fire_time.ToDatetime(UTC)) == (tzdata_version(), at("2026-03-03T14:00"))
    if by_hand:
        await timers.fire()
    timers.clock.moment = at("2026-03-03T14:00")
    assert await timers.fire_due() == []
    after = await timers.get()
    assert (after.fire_count, after.next_fire_time.ToDatetime(UTC)) == (1 + by_hand, at("2026-03-04T14:00"))
    timers.clock.moment = at("2026-03-04T14:00")
    assert await timers.fire_due() == ["2026-03-04T09:00"]


async def test_the_law_in_use_is_recorded_when_a_firing_takes_it_up(timers: "Timers") -> None:
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    async with timers.database.statement() as connection:
        await connection.execute(text("delete from zone_data"))
    await follows_an_older_law(timers.database, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    await timers.fire_due()
    async with timers.database.read() as connection:
        releases = await connection.execute(text("select tzdata_version from zone_data order by 1"))
        assert [release for (release,) in releases] == ["2020a", tzdata_version()]


async def test_a_batch_that_its_worker_has_left_takes_no_firing_from_the_next_one(timers: "Timers") -> None:
    await timers.create("left", cron="0 9 * * *", time_zone=NEW_YORK)
    await follows_an_older_law(timers.database, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    await timers.create("next", fire_time=at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    replica = timers.jobs()
    now = timers.clock.moment
    jobs = {job.data["id"]: job for job in await replica.store.lock_next(now, now + timedelta(seconds=10), 100)}
    async with asyncio.TaskGroup() as group:
        # It waits for the law that its timer follows, and ends after the other.
        group.create_task(replica.handler([jobs["left"]]))
        await asyncio.sleep(0)
        await replica.handler([jobs["next"]])
    await settle(replica, [jobs["next"]])
    assert [event.timer_id for event in timers.fired.events] == ["next"]


async def test_a_timer_under_a_new_law_fires_at_its_local_time(timers: "Timers") -> None:
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    law = zone_from_data(NEW_YORK, zone_data("America/Phoenix"))
    await follows_an_older_law(timers.database, law.data, at("2026-03-03T16:00"))
    timers.clock.moment = at("2026-03-03T14:00")
    replica = timers.jobs()
    async with timers.database.transaction() as tx:
        before = await store.lock(tx.connection, "acme", "t")
        assert before is not None
        moved = rescheduled(before, law, find_zone(NEW_YORK), now=timers.clock.moment)
        assert await store.save(tx.connection, moved, before=before)
        assert not await store.save(tx.connection, replace(moved, due_time=None, finish_time=START), before=before)
    assert await timers.fire_due(replica) == ["2026-03-03T09:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-04T14:00")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("update timer set cron = '61 * * * *' where id = 'damaged'", [InvalidJob]),
        ("update timer set time_zone = 'Atlantis/Poseidonis' where id = 'damaged'", [InvalidJob]),
        ("update timer set tzdata_version = '2019z' where id = 'damaged'", []),
    ],
)
async def test_a_row_that_makes_no_sense_keeps_no_other_from_firing(
    timers: "Timers", damage: str, told: list[type[Exception]]
) -> None:
    await timers.create("damaged", cron="0 * * * *", time_zone=NEW_YORK)
    await timers.create("sound", cron="0 * * * *")
    async with timers.database.statement() as connection:
        await connection.execute(text(damage))
        await connection.execute(text("insert into zone_data values ('2019z', :zone, 'no zone')"), {"zone": NEW_YORK})
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    assert {event.timer_id for event in timers.fired.events} >= {"sound"}
    assert [type(error) for error in timers.errors] == told
    # It rests, or goes on.
    assert await timers.fire_due() == []


FAULTS = [
    ("cron = '61 * * * *'", "61 is above 59"),
    ("time_zone = 'Atlantis/Poseidonis'", f"tzdata {tzdata_version()} has no time zone 'Atlantis/Poseidonis'"),
]


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_timer_that_makes_no_sense_says_so(timers: "Timers", damage: str, said: str) -> None:
    made = await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await set_row(timers, damage)
    foreseen = await timers.get()
    assert foreseen.state == TIMER_STATE_ACTIVE
    assert said in foreseen.fault
    timers.clock.moment = at("2026-03-02T10:00")
    assert await timers.fire_due() == []
    faulty = await timers.get()
    assert (faulty.state, faulty.fault) == (TIMER_STATE_FAULTY, foreseen.fault)
    assert (faulty.next_fire_time, faulty.fire_count, faulty.etag) == (made.next_fire_time, 0, made.etag)
    assert await listed(timers, TimerState.FAULTY) == ["t"]
    assert await listed(timers, TimerState.ACTIVE) == []
    assert (await timers.fire(request_id="r")).timer.state == TIMER_STATE_FAULTY


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_timer_that_makes_no_sense_can_be_paused_and_deleted_but_not_resumed(
    timers: "Timers", damage: str, said: str
) -> None:
    await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await set_row(timers, damage)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    for state in (TIMER_STATE_FAULTY, TIMER_STATE_PAUSED):
        with pytest.raises(Refused) as refused:
            await timers.resume()
        assert (refused.value.reason, refused.value.metadata) == ("TIMER_FAULTY", {"timer_id": "t"})
        assert said in refused.value.message
        assert (await timers.get()).state == state
        resting = await timers.pause()
        assert (resting.state, said in resting.fault) == (TIMER_STATE_PAUSED, True)
    await timers.delete()
    assert (await timers.create(cron="0 * * * *", time_zone=NEW_YORK)).fault == ""


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_timer_that_makes_sense_again_is_resumed(timers: "Timers", damage: str, said: str) -> None:
    made = await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await set_row(timers, damage)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    # As another release reads it.
    await set_row(timers, f"cron = '0 * * * *', time_zone = '{NEW_YORK}'")
    assert await timers.fire_due() == []
    resting = await timers.get()
    assert resting.state == TIMER_STATE_FAULTY
    assert resting.fault
    assert said not in resting.fault
    going = await timers.resume()
    assert (going.state, going.fault, going.etag == made.etag) == (TIMER_STATE_ACTIVE, "", False)
    assert await timers.fire_due() == ["2026-03-02T05:00"]


async def test_what_has_fired_for_the_last_time_has_no_fault(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", time_zone=NEW_YORK, repeat_until=START + HOUR)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    await set_row(timers, "time_zone = 'Atlantis/Poseidonis'")
    finished = await timers.get()
    assert (finished.state, finished.fault) == (TIMER_STATE_FINISHED, "")


async def set_row(timers: "Timers", values: str) -> None:
    """As a release with other zones, or another reading of expressions, finds it."""
    async with timers.database.statement() as connection:
        await connection.execute(text(f"update timer set {values}"))  # noqa: S608 - constants


async def listed(timers: "Timers", state: TimerState) -> list[str]:
    async with timers.database.read() as connection:
        found = await store.list_timers(connection, "acme", topic="", state=state, after="", size=10)
    return [timer.id for timer in found]


async def test_of_a_timer_that_fires_once_no_zone_is_asked(timers: "Timers") -> None:
    await timers.create(fire_time=START + HOUR)
    async with timers.database.statement() as connection:
        await connection.execute(text("update timer set time_zone = 'Atlantis/Poseidonis', tzdata_version = '2019z'"))
    timers.clock.moment = at("2026-03-02T10:00:01")
    assert await timers.fire_due() == ["2026-03-02T10:00:00Z"]


async def test_a_large_batch_fires_each_timer_with_its_own_payload(timers: "Timers") -> None:
    for number in range(30):
        await timers.create(f"t{number}", delay=timedelta(0), payload=bytes([number]) * 65_536)
    assert len(await timers.fire_due(batch=7)) == 30
    assert {event.timer_id: event.payload for event in timers.fired.events} == {
        f"t{number}": bytes([number]) * 65_536 for number in range(30)
    }
