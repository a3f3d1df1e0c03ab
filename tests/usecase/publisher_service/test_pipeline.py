"""Posts that are claimed when the process stops."""

from datetime import timedelta

from tests.usecase.publisher_service.rig import Start


async def test_posts_without_a_sender_at_stop_go_out_once_after_the_restart(start: Start) -> None:
    names = [f"d{number}" for number in range(4)]
    async with start(senders=1, request_timeout=timedelta(seconds=6)) as rig:
        for name in ("first", *names):
            await rig.connect(f"page-{name}")
            await rig.save_draft(name, f"page-{name}", said=name)
        # Until its first answer a provider counts as slow, and gets one post for each sender.
        await rig.go("first", account="page-first", due=rig.clock.now())
        await rig.in_state("PUBLISHED", "first", "page-first")
        await rig.sandbox.faults({"fault": "slow", "seconds": 4, "count": 1})
        due = rig.clock.now()
        for name in names:
            await rig.go(name, account=f"page-{name}", due=due)
        for name in names:
            await rig.in_state("SENDING", name, f"page-{name}")
    async with start() as rig:
        for name in names:
            job = await rig.in_state("PUBLISHED", name, f"page-{name}")
            assert job.attempts == 1
        assert sorted(effect["text"] for effect in rig.sandbox.effects()) == [*names, "first"]
        attempts = await rig.rows("select state, error_reason from attempt order by state, fence")
        assert [tuple(each) for each in attempts] == [("ACCEPTED", "")] * 5 + [("NOT_SENT", "STOPPING")] * 3
