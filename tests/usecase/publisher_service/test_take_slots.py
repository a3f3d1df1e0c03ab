"""A slot that moves takes its posts along, in any order of events and commands."""

from datetime import UTC, timedelta
from itertools import permutations
from typing import Any

import pytest

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

HOUR = timedelta(hours=1)


async def test_a_moved_slot_reschedules_its_post_and_announces_it(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1")
        due = rig.clock.now() + HOUR
        slot = await rig.schedule("d1", due)
        await rig.in_state("SCHEDULED", "d1")

        await rig.move("d1", slot, due + HOUR)

        job = await eventually(lambda: _at_revision(rig, 2))
        assert (job.state, job.slot_id, job.schedule_time) == ("SCHEDULED", slot, due + HOUR)
        assert (job.not_after, job.next_action_time, job.run) == (due + 25 * HOUR, None, 1)
        assert job.target_month == f"{due + HOUR:%Y-%m}-01"
        assert await rig.kinds("d1") == ["CREATED", "SCHEDULED", "SCHEDULED"]
        last = (await rig.announced("d1"))[-1].post_job
        assert (last.slot_revision, last.schedule_time.ToDatetime(UTC)) == (2, due + HOUR)


async def test_only_the_command_for_the_new_time_sends_a_moved_post(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        old, new = rig.clock.now() + timedelta(seconds=1), rig.clock.now() + timedelta(seconds=2)
        slot = await rig.schedule("d1", old)
        await rig.command("d1", slot, old)
        await rig.move("d1", slot, new)
        await eventually(lambda: _at_revision(rig, 2))
        await rig.command("d1", slot, new, slot_revision=2)

        job = await rig.in_state("PUBLISHED", "d1")

        (effect,) = rig.sandbox.effects()
        assert job.publish_time >= new - timedelta(milliseconds=50)
        assert (job.slot_revision, job.schedule_time) == (2, new)
        assert len(await rig.attempts(job)) == 1
        assert effect["id"] == job.external_id


async def test_a_command_for_the_time_before_the_move_is_dropped(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        slot = await rig.schedule("d1", rig.clock.now())
        await rig.move("d1", slot, rig.clock.now() + HOUR)
        await eventually(lambda: _at_revision(rig, 2))
        for emission in (1, 2):
            await rig.command("d1", slot, rig.clock.now(), emission=emission)
        await eventually(rig.publish_stream_is_empty)
        assert (await rig.job("d1")).state == "SCHEDULED"
        assert rig.sandbox.effects() == []


async def test_a_command_ahead_of_the_move_publishes_at_the_new_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        slot = await rig.schedule("d1", rig.clock.now() + HOUR)
        await rig.in_state("SCHEDULED", "d1")
        due = rig.clock.now() + timedelta(seconds=0.5)
        await rig.command("d1", slot, due, slot_revision=2)
        published = await rig.in_state("PUBLISHED", "d1")
        await rig.move("d1", slot, due)
        await rig.save_draft("d2")
        await eventually(lambda: rig.job("d2"))
        assert await rig.job("d1") == published


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_the_newest_time_wins_in_any_order_of_arrival(start: Start, order: tuple[int, ...]) -> None:
    async with start() as rig:
        due, slot = rig.clock.now() + HOUR, rig.ids.new()
        messages = [
            rig.scheduled("d1", slot, due),
            rig.moved("d1", slot, due + HOUR, revision=2),
            rig.moved("d1", slot, due + 2 * HOUR, revision=3),
        ]
        # The first arrives alone, the others together.
        await rig.announce("queue", "slot", messages[order[0]], "acme")
        await eventually(lambda: rig.rows("select 1 from post_job"))
        await rig.announce_together("queue", "slot", [messages[number] for number in order[1:]], "acme")
        job = await eventually(lambda: _at_revision(rig, 3))
        assert (job.state, job.schedule_time) == ("SCHEDULED", due + 2 * HOUR)


async def _at_revision(rig: Rig, revision: int) -> Any:
    jobs = await rig.rows("select * from post_job where draft_id = 'd1'")
    return jobs[0] if jobs and jobs[0].slot_revision == revision else None


async def test_a_slot_writes_no_new_version_of_the_content(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1")
        await rig.in_state("PENDING", "d1")
        [before] = await rig.rows("select ctid::text, xmin::text from content")
        await rig.schedule("d1", rig.clock.now() + HOUR)
        await rig.in_state("SCHEDULED", "d1")
        assert await rig.rows("select ctid::text, xmin::text from content") == [before]
