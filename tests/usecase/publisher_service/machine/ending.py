"""The end of an example: faults stop, and every post that is due comes to its end."""

from datetime import timedelta

from publisher_service.domain.destination import DestinationState
from tests.usecase.publisher_service.machine.authors import Authors
from tests.usecase.publisher_service.machine.callers import Callers
from tests.usecase.publisher_service.machine.checks import Checks
from tests.usecase.publisher_service.machine.engine import Engine
from tests.usecase.publisher_service.machine.scene import ACCOUNTS, DESTINATIONS, DRAFTS
from tests.usecase.publisher_service.machine.world import World

_OPEN = """
    select id, state, state_reason, next_action_time, not_after, in_doubt, parked_on, expected_time from post_job
    where state not in ('PENDING', 'FAILED', 'MISSED', 'CANCELED', 'PUBLISHED', 'NEEDS_ATTENTION')
        and schedule_time is not null
"""
_NEXT = """
    select least(
        (select min(next_action_time) from post_job where next_action_time > :now),
        (select min(lease_end) from post_job where state = 'SENDING'),
        (select min(wake_time) from account_gate where wake_time > :now),
        (select min(wake_time) from parked_line where wake_time > :now)
    )
"""
_LOGGED = """
    select j.id, j.run, count(a.id) as n from post_job j
    left join activity a on a.post_job_id = j.id and a.run = j.run and a.outcome = 'SUCCESS'
    where j.state = 'PUBLISHED' and j.evidence_kind = 'PROVIDER_ID' group by 1, 2 having count(a.id) <> 1
"""
_FORGOTTEN = """
    select part.id, part.state from post_job part
    join post_job post using (organization_id, draft_id, social_account_id, channel, destination)
    where part.part = 1 and post.part = 0 and part.state = 'PENDING' and post.state = 'PUBLISHED'
"""
_MOST_STEPS = 600
_STEP = timedelta(seconds=10)
_LONGEST_STEP = timedelta(hours=6)


class Ending:
    def __init__(self, world: World, authors: Authors, callers: Callers, engine: Engine, checks: Checks) -> None:
        self._world = world
        self._authors, self._callers, self._engine, self._checks = authors, callers, engine, checks

    async def __call__(self, *, lifts: bool) -> None:
        """Ends it; with `lifts` the limits of accounts are lifted, otherwise days pass until they let all posts go."""
        world = self._world
        while world.claimed:
            await self._engine.begin_request("accepted")
        await self._engine.answer_late(0)
        world.provider.looks_fail = False
        await self._open(lifts=lifts)
        world.clock.moment = max([world.now, *(command.schedule_time for command in world.commands)])
        for number in range(len(world.commands)):
            await self._engine.deliver(0, number, "accepted")
        await self._drain(patient=timedelta(hours=1) if lifts else timedelta(days=11))
        assert await world.rows("select 1 from account_gate where open_job_id is not null") == []
        assert await world.rows(_FORGOTTEN) == [], "a comment has not begun, though its post is out"
        assert await world.rows(_LOGGED) == [], "the log of the accounts misses what is out, or has it twice"
        for job in await world.rows("select * from post_job where state = 'NEEDS_ATTENTION'"):
            key = f"{job.id}-{job.run}"
            assert key in world.provider.doubtful or key in world.lost, f"{job.id} needs attention without a doubt"

    async def _open(self, *, lifts: bool) -> None:
        """Nothing stands still any more: everything is approved, connected, active and not held."""
        world = self._world
        world.promised.held.clear()
        world.promised.stopped.clear()
        for hold in await world.rows("select id from hold where in_force"):
            await world.processes[0].release(hold.id)
        for account in ACCOUNTS:
            await self._callers.connect(0, account)
            if lifts:
                await self._callers.set_cap(0, account, None)
            schedule = world.promised.schedules[account]
            if lifts or not schedule.enabled:
                await self._authors.set_schedule(0, account, zone=schedule.time_zone)
        for letter in DESTINATIONS:
            for account in DRAFTS[letter]:
                await self._callers.switch(0, letter, account, DestinationState.ACTIVE)
        for letter in list(world.drafts):
            await self._authors.save(0, letter)
        world.end_step()
        await self._checks.check()

    async def _drain(self, *, patient: timedelta) -> None:
        """Lets time pass until every due job has ended. Those that can wait long enough are not missed."""
        world, began = self._world, self._world.now
        for _ in range(_MOST_STEPS):
            await self._engine.sweep(1, "accepted")
            await self._engine.take_turns(1, "accepted")
            world.end_step()
            await self._checks.check()
            if not await world.rows(_OPEN) and not await world.rows("select 1 from follow_up_due"):
                break
            ((wake,),) = await world.rows(_NEXT, now=world.now)
            world.clock.moment = min(max(wake or world.now, world.now + _STEP), world.now + _LONGEST_STEP)
        waiting = await world.rows(_OPEN)
        assert waiting == [], f"still open: {waiting}"
        missed = await world.rows(
            "select * from post_job where state = 'MISSED' and not_after >= :until and update_time > :began",
            until=began + patient,
            began=began,
        )
        assert missed == [], "a post was missed although nothing stopped it"
