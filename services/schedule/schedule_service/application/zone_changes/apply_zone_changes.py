"""ApplyZoneChanges: announces again everything that the current tzdata release moves, and marks the rest as current."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from schedule_service.adapters.postgres.zone_changes import list_announced, mark_current
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.zone_changes.compared_releases import (
    ComparedReleases,
    compare_releases,
    current_zones,
)
from schedule_service.application.zone_changes.zone_dependents import DEPENDENTS, Announced
from schedule_service.domain.zone_changes.zone_change import Kind, Place
from schedule_service.domain.zone_release import ZoneRelease
from servicekit.clock import Clock
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_UPDATED_AT_ONCE = 200
# Limited, because the marking statement locks rows, and timers that come due in the meantime have to wait.
_MARKED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedZoneChanges:
    moved: Counter[Kind]
    done: bool
    """Nothing is left to apply."""


class ApplyZoneChanges:
    """Works in batches that commit one by one: an interrupted call is repeated, and several may run at once."""

    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox, process_clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._process_clock = process_clock

    async def __call__(self, *, organization_id: str, patience: float) -> AppliedZoneChanges:
        """Starts no further batch after `patience` seconds. An empty `organization_id` means all."""
        until = self._process_clock.monotonic() + patience
        moved = Counter[Kind]()
        async with aclosing(self._batches(organization_id)) as batches:
            async for kind, count in batches:
                moved[kind] += count
                if self._process_clock.monotonic() >= until:
                    return AppliedZoneChanges(moved=moved, done=False)
        return AppliedZoneChanges(moved=moved, done=True)

    async def _batches(self, organization_id: str) -> AsyncGenerator[tuple[Kind, int], None]:
        """Yields the kind of each batch and how many rows of it had moved. Moved rows come before rows to be marked."""
        compared = {kind: await self._database.run(partial(self._compare, kind)) for kind in Kind}
        for kind, releases in compared.items():
            after: Place | None = None
            while batch := await self._next(kind, releases, organization_id, after):
                yield kind, await self._database.run(partial(self._update, kind, batch))
                after = batch[-1].place
        for kind, releases in compared.items():
            for zone_release in releases.agreeing:
                marked = _MARKED_AT_ONCE
                while marked == _MARKED_AT_ONCE:
                    marked = await self._database.run(partial(self._mark, kind, zone_release, organization_id))
                    yield kind, 0

    async def _compare(self, kind: Kind, tx: Transaction) -> ComparedReleases:
        compared = await compare_releases(tx.connection, kind, now=await self._clock.now(tx.connection))
        # Committed before any row is locked, because a transaction that saves a row records its zone while it holds the
        # row.
        await record_zones(tx.connection, await current_zones((*compared.agreeing, *compared.differing)))
        return compared

    async def _mark(self, kind: Kind, zone_release: ZoneRelease, organization_id: str, tx: Transaction) -> int:
        return await mark_current(
            tx.connection, kind, zone_release, organization_id=organization_id, limit=_MARKED_AT_ONCE
        )

    async def _next(
        self, kind: Kind, compared: ComparedReleases, organization_id: str, after: Place | None
    ) -> Sequence[Announced]:
        async with self._database.read() as connection:
            found = await list_announced(
                connection,
                kind,
                list(compared.differing),
                organization_id=organization_id,
                after=after,
                size=_UPDATED_AT_ONCE,
                now=await self._clock.now(connection),
            )
        return [Announced(place, zone_release, compared.zone_in(zone_release)) for place, zone_release in found]

    async def _update(self, kind: Kind, batch: Sequence[Announced], tx: Transaction) -> int:
        now = await self._clock.now(tx.connection)
        updated = [await DEPENDENTS[kind].update(tx.connection, each, now) for each in batch]
        announcements = [each.announcement for each in updated if each and each.announcement]
        await self._outbox.append(tx, announcements, now=now)
        return sum(each.has_moved for each in updated if each)
