"""Which older laws that times were announced with differ from those in force."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone, find_zone, stored_zone, tzdata_version, zone_names
from schedule_service.adapters.postgres import zone_changes as store
from schedule_service.adapters.postgres.zone_data import recorded_zones
from schedule_service.domain.zone_changes.zone_change import UNKNOWN, Kind, Law, can_have_moved

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLaws:
    """The laws of older releases that things of one kind were announced with."""

    agreeing: tuple[Law, ...]
    """With that in force, as far as it matters."""
    differing: Mapping[Law, Zone | None]
    """The zone as it was; None: nobody knows."""

    def zone_by(self, law: Law) -> Zone | None:
        """As `differing`, of any older law that something was announced with."""
        return self.differing[law] if law in self.differing else stored_zone(law.time_zone)


async def laws_of_known_zones(connection: AsyncConnection, kind: Kind) -> list[Law]:
    """In use. A name that the database in use has not is no reason to leave all others alone."""
    laws = await store.laws_in_use(connection, kind)
    for law in laws:
        if law.time_zone not in zone_names() and law.tzdata_version <= tzdata_version():
            _log.error("%s in %s: tzdata %s has no such zone", kind.lower(), law.time_zone, tzdata_version())
    return [law for law in laws if law.time_zone in zone_names()]


async def zones_of(laws: Iterable[Law]) -> list[Zone]:
    """By the law in force."""
    zones: list[Zone] = []
    for law in laws:
        zones.append(find_zone(law.time_zone))
        await asyncio.sleep(0)  # to read one for the first time takes a part of a millisecond
    return zones


async def compared_laws(connection: AsyncConnection, kind: Kind, *, now: datetime) -> ComparedLaws:
    # Releases are named so that they sort. What a newer one has announced is for processes that have it.
    laws = [law for law in await laws_of_known_zones(connection, kind) if law.tzdata_version < tzdata_version()]
    zones = await recorded_zones(connection, laws)
    agreeing: list[Law] = []
    differing: dict[Law, Zone | None] = {}
    for law in laws:
        old = zones.get(law)
        # An unknown release was that of the process which noted none: the one in force, until the watch has noted it.
        if law.tzdata_version == UNKNOWN or (
            old is not None and not can_have_moved(kind, old, find_zone(law.time_zone), now=now)
        ):
            agreeing.append(law)
        else:
            differing[law] = old
        await asyncio.sleep(0)  # a comparison takes a millisecond, and there may be hundreds
    return ComparedLaws(agreeing=tuple(agreeing), differing=differing)
