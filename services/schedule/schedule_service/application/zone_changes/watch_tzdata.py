"""What keeps the drift guard honest: every law in use is known, and it shows when older ones are about."""

import logging
from collections.abc import Sequence
from functools import partial

from opentelemetry import metrics

from civil.zones import tzdata_version
from schedule_service.adapters.postgres import zone_changes as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.zone_changes.compared_releases import laws_of_known_zones, zones_of
from schedule_service.domain.zone_changes.zone_change import UNKNOWN, Kind, Law
from servicekit.pg.database import Database, Transaction

_MARK_AT_ONCE = 1000
_MOST_COUNTED = 10_000
_OF_OURS = frozenset({UNKNOWN, tzdata_version()})

_log = logging.getLogger(__name__)
_outdated = metrics.get_meter("schedule_service").create_gauge(
    "postflow.tzdata.outdated",
    description=f"Schedules, rules and timers announced with an older tzdata release, by kind, {_MOST_COUNTED} at most",
)


class WatchZoneLaws:
    """What was saved before releases were noted counts as announced with the release of the first process that does
    note them, and so do rows that a replica of the time before still writes."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._recorded: set[Law] = set()
        self._has_warned = False

    async def __call__(self) -> bool:
        """True: there is more to note."""
        laws = {kind: await self._database.run(partial(self._record, kind)) for kind in Kind}
        marked = [
            await self._database.run(partial(self._mark, kind, law))
            for kind, found in laws.items()
            for law in found
            if law.tzdata_version == UNKNOWN
        ]
        await self._tell()
        return _MARK_AT_ONCE in marked

    async def _record(self, kind: Kind, tx: Transaction) -> Sequence[Law]:
        """The laws in use. Committed before rows are locked: who saves a row records its zone while he holds it."""
        laws = await laws_of_known_zones(tx.connection, kind)
        ours = {Law(tzdata_version(), law.time_zone) for law in laws if law.tzdata_version in _OF_OURS}
        missing = ours - self._recorded
        await record_zones(tx.connection, await zones_of(missing))
        tx.after_commit(lambda: self._recorded.update(missing))
        return laws

    async def _mark(self, kind: Kind, law: Law, tx: Transaction) -> int:
        return await store.mark(tx.connection, kind, law, organization_id="", limit=_MARK_AT_ONCE)

    async def _tell(self) -> None:
        async with self._database.read() as connection:
            counts = {kind: await store.count_of_older_releases(connection, kind, most=_MOST_COUNTED) for kind in Kind}
        for kind, count in counts.items():
            _outdated.set(count, {"kind": kind.lower()})
        if any(counts.values()) and not self._has_warned:
            told = ", ".join(f"{count} {kind.lower()}" for kind, count in counts.items())
            _log.warning("announced with an older tzdata than %s: %s; call ListZoneChanges", tzdata_version(), told)
            self._has_warned = True
