"""A post on its way through a whole process."""

from datetime import timedelta
from itertools import pairwise

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Start


async def test_an_approved_post_goes_out_once_on_time_with_evidence(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1", said="good morning")
        due = rig.clock.now() + timedelta(seconds=1.5)
        await rig.go("d1", due=due)
        job = await rig.in_state("PUBLISHED", "d1")

        (effect,) = rig.sandbox.effects()
        assert effect["text"] == "good morning"
        assert job.external_id == effect["id"]
        assert job.evidence_kind == "PROVIDER_ID"
        assert job.next_action_time is None
        (attempt,) = await rig.attempts(job)
        assert (attempt.state, attempt.number, attempt.external_id) == ("ACCEPTED", 1, effect["id"])
        assert attempt.start_time <= job.publish_time
        assert job.publish_time >= due - timedelta(milliseconds=50)
        assert await rig.kinds("d1") == ["CREATED", "SCHEDULED", "SUCCEEDED"]
        assert [row.outcome for row in await rig.rows("select outcome from activity")] == ["SUCCESS"]
        assert await rig.rows("select 1 from account_gate where open_job_id is not null") == []
        await eventually(rig.publish_stream_is_empty)


async def test_posts_of_one_account_are_never_sent_at_the_same_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.1})
        names = [f"d{number}" for number in range(8)]
        for name in names:
            await rig.save_draft(name)
            await rig.go(name)
        for name in names:
            await rig.in_state("PUBLISHED", name, within=20)
        attempts = await rig.rows("select start_time, end_time from attempt order by start_time")
        assert len(attempts) == len(names)
        overlaps = [one for one, two in pairwise(attempts) if two.start_time < one.end_time]
        assert overlaps == []
