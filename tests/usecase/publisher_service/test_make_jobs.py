"""Commands make their jobs when the events that should have made them are late or lost."""

from datetime import timedelta

from tests.usecase.publisher_service.rig import Start


async def test_a_command_whose_events_are_lost_makes_a_job_that_is_missed(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now() - timedelta(seconds=5)
        await rig.command("d1", "slot", due, not_after=due + timedelta(seconds=8))
        job = await rig.in_state("WAITING", "d1")
        assert (job.state_reason, job.slot_id, job.next_action_time) == ("CONTENT_PENDING", "slot", job.not_after)
        await rig.in_state("MISSED", "d1")
        assert (await rig.kinds("d1"))[-1] == "MISSED"
        assert rig.sandbox.effects() == []


async def test_a_late_command_for_an_unknown_draft_is_answered(start: Start) -> None:
    async with start() as rig:
        due = rig.clock.now() - timedelta(days=3)
        await rig.command("d1", "slot", due, emission=7, not_after=due + timedelta(days=1))
        await rig.in_state("MISSED", "d1")
        assert (await rig.kinds("d1"))[-1] == "MISSED"
