"""Commands that send nothing yet, or nothing at all: the reasons, and the events that release them."""

from datetime import timedelta

import pytest

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start


async def test_an_unapproved_post_is_blocked_until_it_is_approved(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", approved=False)
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "NOT_APPROVED"
        assert rig.sandbox.effects() == []

        await rig.save_draft("d1", version=2)
        await rig.in_state("PUBLISHED", "d1")
        assert len(rig.sandbox.effects()) == 1


async def test_a_post_of_an_unknown_account_waits_for_its_connection(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "ACCOUNT_NOT_CONNECTED"
        await rig.connect()
        await rig.in_state("PUBLISHED", "d1")


async def test_a_command_ahead_of_its_draft_and_slot_waits_for_them(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now()
        slot = rig.ids.new()
        await rig.command("d1", slot, due, revision=3)
        await rig.schedule("d1", due, slot=slot)
        job = await rig.in_state("WAITING", "d1")
        assert job.state_reason == "CONTENT_PENDING"
        await rig.save_draft("d1", revision=3)
        await rig.in_state("PUBLISHED", "d1")


async def test_content_older_than_the_command_knows_is_not_sent(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="old")
        due = rig.clock.now()
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, revision=2)
        await rig.in_state("WAITING", "d1")
        await rig.save_draft("d1", said="new", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["new"]


async def test_a_command_after_its_latest_time_misses_its_post(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        due = rig.clock.now() - timedelta(hours=2)
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, not_after=due + timedelta(hours=1))
        await rig.in_state("MISSED", "d1")
        assert rig.sandbox.effects() == []
        assert (await rig.kinds("d1"))[-1] == "MISSED"


async def test_a_new_slot_after_a_failure_begins_the_next_run(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="x" * 5001)
        await rig.go("d1")
        await rig.in_state("FAILED", "d1")
        await rig.save_draft("d1", said="short", revision=2)
        await rig.go("d1", revision=2)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, job.attempts) == (2, 1)


async def test_copies_of_a_command_publish_once_and_are_answered_again(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        due = rig.clock.now()
        slot = await rig.go("d1", due=due)
        await rig.in_state("PUBLISHED", "d1")
        await eventually(rig.publish_stream_is_empty)
        for emission in (1, 2, 3):
            await rig.command("d1", slot, due, emission=emission)
        await eventually(rig.publish_stream_is_empty)
        # Copies that arrive together are answered once.
        assert (await rig.kinds("d1")).count("SUCCEEDED") in (2, 3)
        assert len(rig.sandbox.effects()) == 1


async def test_a_command_of_a_replaced_slot_is_dropped(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        old = rig.ids.new()
        far = rig.clock.now() + timedelta(hours=1)
        await rig.schedule("d1", far)
        await rig.in_state("SCHEDULED", "d1")
        await rig.command("d1", old, rig.clock.now())
        await eventually(rig.publish_stream_is_empty)
        assert (await rig.job("d1")).state == "SCHEDULED"
        assert rig.sandbox.effects() == []


async def test_a_command_waits_for_the_revision_that_it_names(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now() - timedelta(seconds=5)
        await rig.command("d1", "slot", due, revision=2)
        await rig.in_state("WAITING", "d1")
        await rig.save_draft("d1", said="old", revision=1)
        await rig.save_draft("d1", said="new", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["new"]


async def test_a_newer_slot_with_a_smaller_id_goes_out(start: Start) -> None:
    """The order of slots is Queue's sequence number; their ids come from the clocks of processes."""
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        await rig.sandbox.faults({"fault": "status", "status": 400, "count": 1})
        rig.sequences |= {"slot-9": 1, "slot-1": 2}
        now = rig.clock.now()
        await rig.schedule("d1", now, slot="slot-9")
        await rig.command("d1", "slot-9", now)
        await rig.in_state("FAILED", "d1")
        await rig.schedule("d1", now, slot="slot-1")
        await rig.command("d1", "slot-1", now)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, job.slot_id) == (2, "slot-1")


@pytest.mark.parametrize(("in_doubt", "ends"), [(False, "FAILED"), (True, "NEEDS_ATTENTION")])
async def test_a_run_without_an_attempt_left_is_not_sent(start: Start, in_doubt: bool, ends: str) -> None:
    async with start() as rig:
        slot = await ahead(rig)
        await rig.write("update post_job set attempts = 5, in_doubt = :in_doubt", in_doubt=in_doubt)
        await rig.command("d1", slot, rig.clock.now())
        job = await rig.in_state(ends, "d1")
        assert job.error_reason == ("OUTCOME_UNKNOWN" if in_doubt else "EXHAUSTED")
        assert (await rig.kinds("d1"))[-1] == ends
        assert (await rig.attempts(job), rig.sandbox.effects()) == ([], [])


async def test_a_run_in_doubt_whose_content_is_lost_sends_no_other(start: Start) -> None:
    async with start(unknown_deadline=timedelta(seconds=1)) as rig:
        slot = await ahead(rig, revision=2)
        await rig.write("update post_job set attempts = 1, in_doubt = true, content_revision = 1")
        await rig.command("d1", slot, rig.clock.now(), revision=2)
        job = await rig.in_state("NEEDS_ATTENTION", "d1")
        assert (await rig.kinds("d1"))[-2:] == ["UNCERTAIN", "NEEDS_ATTENTION"]
        uncertain = (await rig.announced("d1"))[-2].post_job
        assert uncertain.state_reason == "CONTENT_LOST"
        assert (await rig.attempts(job), rig.sandbox.effects()) == ([], [])


async def ahead(rig: Rig, *, revision: int = 1) -> str:
    """Makes an approved post whose slot is far ahead, and returns the slot."""
    await rig.connect()
    await rig.save_draft("d1", revision=revision)
    slot: str = await rig.schedule("d1", rig.clock.now() + timedelta(days=30))
    await rig.in_state("SCHEDULED", "d1")
    return slot
