"""Posts that are claimed when the process stops, or while those of another organization hang."""

from datetime import timedelta

from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start


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


async def test_requests_of_one_organization_that_hang_hold_up_no_other(start: Start) -> None:
    hanging = [f"d{number}" for number in range(12)]
    async with start(senders=4, request_timeout=timedelta(seconds=8)) as rig:
        for name in hanging:
            await rig.connect(f"page-{name}")
            await rig.save_draft(name, f"page-{name}")
        await rig.connect("victim", organization="another")
        await rig.save_draft("waits", "victim", organization="another")
        await rig.sandbox.faults(*({"fault": "hang_without_effect", "account": f"ext-page-{name}"} for name in hanging))
        due = rig.clock.now()
        for name in hanging:
            await rig.go(name, account=f"page-{name}", due=due)
        await eventually(lambda: sending(rig))
        await rig.command("waits", rig.new_slot(), due, account="victim", organization="another")
        await rig.in_state("PUBLISHED", "waits", "victim")
        states = await rig.rows("select distinct state from attempt where organization_id = 'acme'")
        assert [row.state for row in states] == ["SENDING"], "none of those that hang has ended"


async def sending(rig: Rig) -> bool:
    (row,) = await rig.rows("select count(*) as n from attempt where state = 'SENDING'")
    return bool(row.n >= 4)
