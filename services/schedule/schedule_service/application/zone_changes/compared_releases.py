"""Compares the older tzdata releases that times were announced with to the current one."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone, find_zone, stored_zone, tzdata_version, zone_names
from schedule_service.adapters.postgres.zone_changes import list_zone_releases
from schedule_service.adapters.postgres.zone_data import recorded_zones
from schedule_service.domain.zone_changes.zone_change import Kind, can_have_moved
from schedule_service.domain.zone_release import UNRECORDED, ZoneRelease

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReleases:
    """The zones and older releases that rows of one kind were announced with."""

    agreeing: tuple[ZoneRelease, ...]
    """These give the same times as the current release, as far as this kind depends on them."""
    differing: Mapping[ZoneRelease, Zone | None]
    """The zone as the old release had it; None: no record of it exists."""

    def zone_in(self, zone_release: ZoneRelease) -> Zone | None:
        """Returns the zone as that release had it, for any older release that a row was announced with."""
        return self.differing[zone_release] if zone_release in self.differing else stored_zone(zone_release.time_zone)


async def known_zone_releases(connection: AsyncConnection, kind: Kind) -> list[ZoneRelease]:
    """Lists the zones and releases in use. A zone that the current tzdata lacks is logged and left out."""
    in_use = await list_zone_releases(connection, kind)
    for each in in_use:
        if each.time_zone not in zone_names() and each.tzdata_version <= tzdata_version():
            _log.error("%s in %s: tzdata %s has no such zone", kind.lower(), each.time_zone, tzdata_version())
    return [each for each in in_use if each.time_zone in zone_names()]


async def current_zones(zone_releases: Iterable[ZoneRelease]) -> list[Zone]:
    """Returns the zones as the current release defines them."""
    zones: list[Zone] = []
    for each in zone_releases:
        zones.append(find_zone(each.time_zone))
        await asyncio.sleep(0)  # Loading a zone for the first time takes a fraction of a millisecond.
    return zones


async def compare_releases(connection: AsyncConnection, kind: Kind, *, now: datetime) -> ComparedReleases:
    # Release names sort by age. Rows announced with a newer release are left to processes that have it.
    older = [each for each in await known_zone_releases(connection, kind) if each.tzdata_version < tzdata_version()]
    zones = await recorded_zones(connection, older)
    agreeing: list[ZoneRelease] = []
    differing: dict[ZoneRelease, Zone | None] = {}
    for each in older:
        old = zones.get(each)
        # An unrecorded release counts as the current one, until `WatchTzdata` has marked the row.
        if each.tzdata_version == UNRECORDED or (
            old is not None and not can_have_moved(kind, old, find_zone(each.time_zone), now=now)
        ):
            agreeing.append(each)
        else:
            differing[each] = old
        await asyncio.sleep(0)  # A comparison takes a millisecond, and there may be hundreds.
    return ComparedReleases(agreeing=tuple(agreeing), differing=differing)
