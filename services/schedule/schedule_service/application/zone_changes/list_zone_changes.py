"""ListZoneChanges: lists the announced times that the current tzdata release moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile

from sqlalchemy.ext.asyncio import AsyncConnection

from schedule_service.adapters.postgres.zone_changes import list_announced
from schedule_service.application.zone_changes.compared_releases import compare_releases
from schedule_service.application.zone_changes.zone_dependents import DEPENDENTS, Announced
from schedule_service.domain.zone_changes.zone_change import Kind, Place, ZoneChange
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

Position = tuple[Kind, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneChangePage:
    changes: Sequence[ZoneChange]
    last: Position | None
    """The position after which the next page begins; None: this is the last page."""


class ListZoneChanges:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self, *, organization_id: str, after: Position | None, size: int) -> ZoneChangePage:
        """Examines at most `size` rows and lists those that have moved. An empty `organization_id` means all."""
        changes: list[ZoneChange] = []
        left = size
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            for kind in dropwhile(lambda each: after is not None and each != after[0], Kind):
                behind = after[1] if after and kind == after[0] else None
                found = await _announced(connection, kind, organization_id, behind, left, now)
                for each in found:
                    moved = await DEPENDENTS[kind].moved(connection, each, now)
                    if moved is not None:
                        changes.append(ZoneChange(kind, each.place, each.zone_release, moved))
                left -= len(found)
                if not left:
                    return ZoneChangePage(changes=changes, last=(kind, found[-1].place))
        return ZoneChangePage(changes=changes, last=None)


async def _announced(
    connection: AsyncConnection, kind: Kind, organization_id: str, after: Place | None, size: int, now: datetime
) -> list[Announced]:
    compared = await compare_releases(connection, kind, now=now)
    found = await list_announced(
        connection, kind, list(compared.differing), organization_id=organization_id, after=after, size=size, now=now
    )
    return [Announced(place, zone_release, compared.zone_in(zone_release)) for place, zone_release in found]
