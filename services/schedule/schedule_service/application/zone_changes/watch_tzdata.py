"""Records the zones in use, and reports how many times were announced with an older tzdata release."""

import logging
from collections.abc import Sequence
from functools import partial

from opentelemetry import metrics

from civil.zones import tzdata_version
from schedule_service.adapters.postgres.zone_changes import count_outdated, mark_current
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.zone_changes.compared_releases import current_zones, known_zone_releases
from schedule_service.domain.zone_changes.zone_change import Kind
from schedule_service.domain.zone_release import UNRECORDED, ZoneRelease
from servicekit.pg.database import Database, Transaction

_MARKED_AT_ONCE = 1000
_MOST_COUNTED = 10_000
_OUR_RELEASES = frozenset({UNRECORDED, tzdata_version()})

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_outdated = _meter.create_gauge(
    "postflow.tzdata.outdated",
    description=f"Schedules, rules and timers announced with an older tzdata release, by kind, at most {_MOST_COUNTED}",
)


class WatchTzdata:
    """Marks rows without a release as announced with the current one.

    They were saved before Schedule recorded releases, or by a replica of such a release that still runs.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._recorded: set[ZoneRelease] = set()
        self._has_warned = False

    async def __call__(self) -> bool:
        """Returns True if there are more rows to mark."""
        in_use = {kind: await self._database.run(partial(self._record, kind)) for kind in Kind}
        marked = [
            await self._database.run(partial(self._mark, kind, zone_release))
            for kind, zone_releases in in_use.items()
            for zone_release in zone_releases
            if zone_release.tzdata_version == UNRECORDED
        ]
        await self._report()
        return _MARKED_AT_ONCE in marked

    async def _record(self, kind: Kind, tx: Transaction) -> Sequence[ZoneRelease]:
        """Records the zones in use, and returns them with their releases.

        This is committed before any row is locked, because a transaction that saves a row records its zone while it
        holds the row.
        """
        in_use = await known_zone_releases(tx.connection, kind)
        current = {
            ZoneRelease(tzdata_version(), each.time_zone) for each in in_use if each.tzdata_version in _OUR_RELEASES
        }
        missing = current - self._recorded
        await record_zones(tx.connection, await current_zones(missing))
        tx.after_commit(lambda: self._recorded.update(missing))
        return in_use

    async def _mark(self, kind: Kind, zone_release: ZoneRelease, tx: Transaction) -> int:
        return await mark_current(tx.connection, kind, zone_release, organization_id="", limit=_MARKED_AT_ONCE)

    async def _report(self) -> None:
        async with self._database.read() as connection:
            counts = {kind: await count_outdated(connection, kind, most=_MOST_COUNTED) for kind in Kind}
        for kind, count in counts.items():
            _outdated.set(count, {"kind": kind.lower()})
        if any(counts.values()) and not self._has_warned:
            listed = ", ".join(f"{count} {kind.lower()}" for kind, count in counts.items())
            _log.warning("announced with an older tzdata than %s: %s; call ListZoneChanges", tzdata_version(), listed)
            self._has_warned = True
