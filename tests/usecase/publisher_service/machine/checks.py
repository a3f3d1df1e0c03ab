"""Checks of what is true of every post at any time, and of what has become of it in the end."""

from collections import Counter
from datetime import timedelta

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.machine.world import ACCOUNTS, CAPPED, EVERYTHING, MOST, World

MOVING = {"READY", "WAITING", "BLOCKED", "SENDING", "UNKNOWN"}
UNSENT = {"FAILED", "MISSED", "CANCELED"}
RESERVED = "select post_job_id, fence, reserve_time from reservation where social_account_id = :account"
OPEN = """
    select id, social_account_id, state, state_reason, next_action_time from post_job
    where state not in ('PENDING', 'FAILED', 'MISSED', 'CANCELED', 'PUBLISHED', 'NEEDS_ATTENTION')
        and schedule_time is not null
"""
_PATIENCE = timedelta(hours=2)
_STEP = timedelta(seconds=10)


class Checks:
    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}
        self._announced: dict[str, int] = {}
        self._orders: dict[str, tuple[int, str, int]] = {}
        self._contents: dict[str, int] = {}
        self._position = 0

    async def check(self, world: World) -> None:
        assert not world.broken, world.broken
        world.urgent.clear()
        await self._check_cap(world)
        jobs = await world.rows("select j.*, cast(j as text) as whole from post_job j")
        for job in jobs:
            key = f"{job.id}-{job.run}"
            effects = world.provider.effects.get(key, [])
            where = f"{job.id} of {job.social_account_id}, run {job.run}, is {job.state} {job.state_reason}"
            assert len(effects) <= 1, f"{where}, out as {effects}"
            unproven = key in world.provider.doubtful and key not in world.denied
            assert not (unproven and job.state in UNSENT), f"{where}, but its outcome was never proven"
            assert not (effects and job.state in UNSENT), f"{where}, out as {effects}"
            if job.state == "PUBLISHED":
                assert [job.external_id] == effects, f"{where} as {job.external_id}, the provider has {effects}"
            assert (job.state == "PUBLISHED") == bool(job.evidence_kind), f"{where}, evidence {job.evidence_kind!r}"
            assert 0 <= job.attempts <= MOST, f"{where} after {job.attempts} attempts"
            acting = job.next_action_time or (job.lease_end if job.state == "SENDING" else None)
            assert (acting is not None) == (job.state in MOVING), f"{where}, next action {acting}"
            order = job.slot_sequence, job.slot_id, job.slot_revision
            assert order >= self._orders.get(job.id, order), f"{where}, its slot {order} is older than the one before"
            self._orders[job.id] = order
            self._check_version(job.id, job.version, f"{job.state} {job.run} {job.schedule_time} {job.external_id}")
        for row in await world.rows("select draft_id, version from content"):
            assert row.version >= self._contents.get(row.draft_id, 0), (
                f"{row.draft_id} is in version {row.version} again"
            )
            self._contents[row.draft_id] = row.version
        await self._check_one_in_flight(world)
        await self._check_events(world, {job.id: job.version for job in jobs})

    def _check_version(self, job: str, version: int, shown: str) -> None:
        before, showed = self._seen.get(job, (0, ""))
        assert version >= before, f"{job} went from version {before} to {version}"
        assert version > before or shown == showed, f"{job} changed in version {version}: {showed!r}, {shown!r}"
        self._seen[job] = version, shown

    async def _check_cap(self, world: World) -> None:
        """No day has more reservations than the cap, and every effect has one."""
        if world.cap is None:
            return
        reserved = {row.post_job_id: row.reserve_time for row in await world.rows(RESERVED, account=CAPPED)}
        days = Counter(time.date() for time in reserved.values())
        assert all(count <= world.cap for count in days.values()), f"{days} of {world.cap} are reserved"
        for row in await world.rows("select id, run from post_job where social_account_id = :account", account=CAPPED):
            if world.provider.effects.get(f"{row.id}-{row.run}"):
                assert row.id in reserved, f"{row.id} is out, and does not count"

    async def _check_one_in_flight(self, world: World) -> None:
        rows = await world.rows("""
            select social_account_id, count(*) as n from post_job where state = 'SENDING' group by 1 having count(*) > 1
        """)
        assert rows == [], "an account sends several posts at a time"
        stuck = await world.rows("""
            select g.* from account_gate g join post_job j on j.id = g.open_job_id where j.state <> 'SENDING'
        """)
        assert stuck == [], "a gate is closed by a post that is not out"

    async def _check_events(self, world: World, versions: dict[str, int]) -> None:
        """The versions that are announced grow, and belong to what is stored."""
        for row in await world.rows(
            "select position, payload from outbox where position > :after order by position", after=self._position
        ):
            self._position = row.position
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                if event.type == PostJobChanged.DESCRIPTOR.full_name:
                    job = PostJobChanged.FromString(event.payload).post_job
                    assert self._announced.get(job.id, 0) <= job.version <= versions[job.id], f"announced: {job}"
                    self._announced[job.id] = job.version

    async def finish(self, world: World) -> None:
        """Faults stop, accounts are connected, and holds released: every due job ends, and no gate stays closed."""
        await world.answer_late(0)
        await world.disown(0)
        world.provider.looks_fail = False
        for scope in (Scope.ORGANIZATION, Scope.PROVIDER):
            await world.release_all(0, scope)
        for name, account in [each for each in world.promised.held if each[1] != EVERYTHING]:
            await world.release(0, name.partition("-")[0], account)
        for account in ACCOUNTS:
            await world.connect(0, account)
        for letter in world.drafts:
            await world.save(0, letter)
        world.clock.moment = max([world.now, *(command.schedule_time for command in world.commands)])
        for number in range(len(world.commands)):
            await world.deliver(0, number, "accepted")
        end = world.now + _PATIENCE
        while open_jobs := await world.rows(OPEN):
            assert world.now < end, f"still open: {open_jobs}"
            world.clock.moment += _STEP
            await world.sweep(1, "accepted")
            await world.take_turns(1, "accepted")
            await self.check(world)
        assert await world.rows("select 1 from account_gate where open_job_id is not null") == []
        attention = await world.rows("select * from post_job where state = 'NEEDS_ATTENTION'")
        for job in attention:
            key = f"{job.id}-{job.run}"
            assert key in world.provider.doubtful or key in world.lost, f"{job.id} needs attention without a doubt"
