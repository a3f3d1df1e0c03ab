"""ApplyZoneChanges: what the law in force moves is announced anew; the rest is marked as following it."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from schedule_service.adapters.postgres import zone_changes as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.zone_changes.compared_releases import ComparedLaws, compared_laws, zones_of
from schedule_service.application.zone_changes.zone_dependents import FOLLOWERS, Announced
from schedule_service.domain.zone_changes.zone_change import Kind, Law, Place
from servicekit.clock import Clock
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_FOLLOW_AT_ONCE = 200
# Marking is one statement; its locks hold up timers that come due meanwhile.
_MARK_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedZoneChanges:
    moved: Counter[Kind]
    done: bool
    """Nothing is left."""


class ApplyZoneChanges:
    """In batches, each committed by itself: who is interrupted calls again, and several may call at once."""

    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox, process_clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._process_clock = process_clock

    async def __call__(self, *, organization_id: str, patience: float) -> AppliedZoneChanges:
        """An empty `organization_id` means all. After `patience` seconds no other batch is begun."""
        until = self._process_clock.monotonic() + patience
        moved = Counter[Kind]()
        async with aclosing(self._batches(organization_id)) as batches:
            async for kind, count in batches:
                moved[kind] += count
                if self._process_clock.monotonic() >= until:
                    return AppliedZoneChanges(moved=moved, done=False)
        return AppliedZoneChanges(moved=moved, done=True)

    async def _batches(self, organization_id: str) -> AsyncGenerator[tuple[Kind, int], None]:
        """After each: of which kind it was, and how many of them had moved. Those come first, the marks can wait."""
        compared = {kind: await self._database.run(partial(self._compare, kind)) for kind in Kind}
        for kind, laws in compared.items():
            after: Place | None = None
            while batch := await self._next(kind, laws, organization_id, after):
                yield kind, await self._database.run(partial(self._follow, kind, batch))
                after = batch[-1].place
        for kind, laws in compared.items():
            for law in laws.agreeing:
                marked = _MARK_AT_ONCE
                while marked == _MARK_AT_ONCE:
                    marked = await self._database.run(partial(self._mark, kind, law, organization_id))
                    yield kind, 0

    async def _compare(self, kind: Kind, tx: Transaction) -> ComparedLaws:
        laws = await compared_laws(tx.connection, kind, now=await self._clock.now(tx.connection))
        # Committed before any row is locked: those who save a row record its zone while they hold it.
        await record_zones(tx.connection, await zones_of((*laws.agreeing, *laws.differing)))
        return laws

    async def _mark(self, kind: Kind, law: Law, organization_id: str, tx: Transaction) -> int:
        return await store.mark(tx.connection, kind, law, organization_id=organization_id, limit=_MARK_AT_ONCE)

    async def _next(
        self, kind: Kind, laws: ComparedLaws, organization_id: str, after: Place | None
    ) -> Sequence[Announced]:
        async with self._database.read() as connection:
            found = await store.page(
                connection,
                kind,
                list(laws.differing),
                organization_id=organization_id,
                after=after,
                size=_FOLLOW_AT_ONCE,
                now=await self._clock.now(connection),
            )
        return [Announced(place, law, laws.zone_by(law)) for place, law in found]

    async def _follow(self, kind: Kind, batch: Sequence[Announced], tx: Transaction) -> int:
        now = await self._clock.now(tx.connection)
        followed = [await FOLLOWERS[kind].follow(tx.connection, each, now) for each in batch]
        news = [each.announcement for each in followed if each and each.announcement]
        await self._outbox.append(tx, news, now=now)
        return sum(each.has_moved for each in followed if each)
