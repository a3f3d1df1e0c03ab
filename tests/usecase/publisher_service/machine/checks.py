"""Checks of what is true of every post, account and destination after each step."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, time, timedelta
from typing import Any

from sqlalchemy import Row

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from tests.usecase.publisher_service.machine.destinations import Destinations
from tests.usecase.publisher_service.machine.scene import MOST
from tests.usecase.publisher_service.machine.snapshot import Rows, Snapshot, look_at
from tests.usecase.publisher_service.machine.world import World

_MOVING = {"READY", "WAITING", "BLOCKED", "SENDING", "UNKNOWN"}
_UNSENT = {"FAILED", "MISSED", "CANCELED"}
# A cap with room is looked at again after this, at the latest.
_SOON = timedelta(minutes=6)


class Checks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._destinations = Destinations(world)
        self._seen: dict[str, tuple[int, str]] = {}
        self._announced: dict[str, int] = {}
        self._orders: dict[str, tuple[int, str, int]] = {}
        self._contents: dict[str, int] = {}
        self._position = 0

    async def check(self) -> None:
        world = self._world
        assert not world.broken, world.broken
        seen = await look_at(world.processes[0], after=self._position)
        for job in seen.jobs:
            self._check_job(job)
        for row in seen.contents:
            assert row.version >= self._contents.get(row.draft_id, 0), f"{row.draft_id} is in version {row.version}"
            self._contents[row.draft_id] = row.version
        in_flight = Counter(job.social_account_id for job in seen.jobs if job.state == "SENDING")
        assert max(in_flight.values(), default=0) <= 1, "an account sends several posts at a time"
        assert seen.stuck == [], "a gate is closed by a post that is not out"
        for account in seen.disconnected:
            newest = (account.id, world.tokens[account.id])
            assert newest in world.ended_tokens, f"{newest} was neither refused nor erased"
        self._check_caps(seen)
        self._destinations.check(seen)
        self._check_events(seen)
        world.replace(
            {job.draft_id for job in seen.jobs} - {job.draft_id for job in seen.jobs if job.state != "PUBLISHED"}
        )

    def _check_job(self, job: Row[Any]) -> None:
        world, key = self._world, f"{job.id}-{job.run}"
        effects = world.provider.effects.get(key, [])
        where = f"{job.id} of {job.social_account_id}, run {job.run}, is {job.state} {job.state_reason}"
        assert len(effects) <= 1, f"{where}, out as {effects}"
        unproven = key in world.provider.doubtful and key not in world.denied
        assert not (unproven and job.state in _UNSENT), f"{where}, but its outcome was never proven"
        assert not (effects and job.state in _UNSENT), f"{where}, out as {effects}"
        if job.state == "PUBLISHED":
            assert [job.external_id] == effects, f"{where} as {job.external_id}, the provider has {effects}"
        if job.state == "MISSED":
            run, not_after = world.promised.called.get(job.id, (0, job.not_after))
            latest = not_after if run == job.run else job.not_after
            assert latest <= world.now, f"{where} before {latest}"
        assert (job.state == "PUBLISHED") == bool(job.evidence_kind), f"{where}, evidence {job.evidence_kind!r}"
        assert 0 <= job.attempts <= MOST, f"{where} after {job.attempts} attempts"
        acting = job.next_action_time or (job.lease_end if job.state == "SENDING" else None)
        assert (acting is not None) == (job.state in _MOVING), f"{where}, next action {acting}"
        order = job.slot_sequence, job.slot_id, job.slot_revision
        assert order >= self._orders.get(job.id, order), f"{where}, its slot {order} is older than the one before"
        self._orders[job.id] = order
        self._check_version(job.id, job.version, f"{job.state} {job.run} {job.schedule_time} {job.external_id}")
        if job.state in ("FAILED", "MISSED"):
            world.promised.over[job.id] = order, job.run
        elif job.state == "CANCELED":
            # A target that its draft regains goes out in its slot, in the next run.
            world.promised.over.pop(job.id, None)

    def _check_version(self, job: str, version: int, shown: str) -> None:
        before, showed = self._seen.get(job, (0, ""))
        assert version >= before, f"{job} went from version {before} to {version}"
        assert version > before or shown == showed, f"{job} changed in version {version}: {showed!r}, {shown!r}"
        self._seen[job] = version, shown

    def _check_caps(self, seen: Snapshot) -> None:
        """A post that is out counts, and no parked post is forgotten."""
        assert seen.miscounted == [], "the use of a cap is miscounted"
        promised = self._world.promised
        reserved: defaultdict[str, list[Row[Any]]] = defaultdict(list)
        for row in seen.reserved:
            reserved[row.social_account_id].append(row)
        assert seen.wasted == [], "proven failures keep their places of a cap"
        for row in seen.uncounted:
            is_today = row.start_time > self._world.now - timedelta(days=1)
            capped = promised.cap_of(row.social_account_id) is not None
            assert not (is_today and capped), f"{row} does not count for the cap of its account"
        for row in seen.parked:
            latest = self._latest_look(row, reserved[row.social_account_id])
            assert row.wake_time is not None, f"{row} is looked at by nobody"
            assert latest is None or row.wake_time <= latest, f"{row} is looked at after {latest}"

    def _latest_look(self, parked: Row[Any], reserved: Rows) -> datetime | None:
        """Returns when parked posts have to be looked at, at the latest; None if that is not certain."""
        promised, now, account = self._world.promised, self._world.now, parked.social_account_id
        schedule, zone = promised.schedules.get(account), promised.zone_of(account)
        if schedule is None or zone is None:
            return None
        if parked.parked_on == "spacing:POST":
            return now + max(schedule.min_spacing or timedelta(0), timedelta(seconds=1))
        if parked.parked_on != "action:POST":
            return None
        cap, today = promised.cap_of(account), promised.day_of(account, now)
        used = sum(promised.day_of(account, each.reserve_time) == today for each in reserved)
        if cap is None or used < cap:
            return now + _SOON
        assert today is not None
        return datetime.combine(today + timedelta(days=1), time(), zone).astimezone(UTC)

    def _check_events(self, seen: Snapshot) -> None:
        """The versions that are announced grow, and belong to what is stored."""
        versions = {job.id: job.version for job in seen.jobs}
        for row in seen.announced:
            self._position = row.position
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                if event.type == PostJobChanged.DESCRIPTOR.full_name:
                    job = PostJobChanged.FromString(event.payload).post_job
                    assert self._announced.get(job.id, 0) <= job.version <= versions[job.id], f"announced: {job}"
                    self._announced[job.id] = job.version
