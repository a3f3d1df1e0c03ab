"""Where slots stand by the law in force, when their instants were found by an older one.

A slot means a time on the wall. When a government changes its clocks, that time becomes another instant, and the slot
goes along, if it can.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import NamedTuple

from civil.wall_clock import resolve
from civil.zones import find_zone, zone_names
from queue_service.domain.slot import SPACING


class Behind(NamedTuple):
    """An account some of whose slots may follow an older law than that of the release."""

    organization_id: str
    social_account_id: str
    tzdata_version: str


class Outdated(NamedTuple):
    """A slot that is not handed over yet, and whose instant was found by an older law."""

    organization_id: str
    social_account_id: str
    slot_id: str
    schedule_time: datetime
    not_after: datetime
    time_zone: str
    nominal: datetime | None
    """None: an instant of the caller's choice."""


class Obstacle(StrEnum):
    """Why a slot does not go out at its time."""

    NONE = ""
    # Another slot stands there.
    TAKEN = "TAKEN"
    # By the law in force its local date does not exist.
    NO_SUCH_DATE = "NO_SUCH_DATE"
    # The release in force has no such zone any more.
    NO_SUCH_ZONE = "NO_SUCH_ZONE"


class Relocated(NamedTuple):
    slot: Outdated
    schedule_time: datetime
    obstacle: Obstacle = Obstacle.NONE

    @property
    def is_moved(self) -> bool:
        return self.schedule_time != self.slot.schedule_time

    @property
    def not_after(self) -> datetime:
        """As late as before."""
        return self.slot.not_after + (self.schedule_time - self.slot.schedule_time)

    @property
    def local_date(self) -> date | None:
        """None: as before."""
        return self._local.date() if self._local else None

    @property
    def local_time(self) -> time | None:
        return self._local.time() if self._local else None

    @property
    def _local(self) -> datetime | None:
        if self.slot.time_zone not in zone_names():
            return None
        return self.schedule_time + find_zone(self.slot.time_zone).offset_at(self.schedule_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedSlot:
    """A slot with its new time, and all that is to be announced of it."""

    organization_id: str
    id: str
    revision: int
    draft_id: str
    social_account_id: str
    sequence: int
    schedule_time: datetime
    previous_schedule_time: datetime
    not_after: datetime
    time_zone: str
    nominal: datetime | None
    traceparent: str
    # Channel and destination.
    targets: tuple[tuple[str, str], ...]


def relocate(slots: Iterable[Outdated], standing: Iterable[datetime], *, earliest: datetime) -> list[Relocated]:
    """The slots of one account, between those that stand fast. None goes out before `earliest` that did not already.

    Who can have the time that it is meant for has it. Who finds it taken stays, or makes way to the next free minute
    behind it for somebody who needs the old place. Who finds it over goes out as soon as may be.
    """
    places = _Places(standing)
    relocated: list[Relocated] = []
    moving: list[tuple[datetime, Outdated]] = []
    for slot in slots:
        instant = _meant(slot)
        if instant is None or instant == slot.schedule_time:
            places.take(slot.schedule_time)
            relocated.append(Relocated(slot, slot.schedule_time, Obstacle.NONE if instant else _obstacle(slot)))
        else:
            moving.append((instant, slot))
    left: list[tuple[datetime, Outdated]] = []
    for instant, slot in sorted(moving):
        if instant >= earliest and places.is_free(instant):
            places.take(instant)
            relocated.append(Relocated(slot, instant))
        else:
            left.append((instant, slot))
    for instant, slot in left:
        found = (
            _as_soon_as_may_be(slot, instant, earliest, places) if instant < earliest else _aside(slot, instant, places)
        )
        places.take(found.schedule_time)
        relocated.append(found)
    return relocated


def _meant(slot: Outdated) -> datetime | None:
    if slot.nominal is None:
        return slot.schedule_time
    if slot.time_zone not in zone_names():
        return None
    resolved = resolve(slot.nominal, find_zone(slot.time_zone))
    return resolved.instant if resolved else None


def _obstacle(slot: Outdated) -> Obstacle:
    """To a slot that is meant for no instant."""
    return Obstacle.NO_SUCH_DATE if slot.time_zone in zone_names() else Obstacle.NO_SUCH_ZONE


def _as_soon_as_may_be(slot: Outdated, instant: datetime, earliest: datetime, places: "_Places") -> Relocated:
    place = places.first_free(earliest)
    # It is late already: where it stands it goes out sooner.
    if instant <= slot.schedule_time <= place and places.is_free(slot.schedule_time):
        place = slot.schedule_time
    return Relocated(slot, place)


def _aside(slot: Outdated, instant: datetime, places: "_Places") -> Relocated:
    stays = places.is_free(slot.schedule_time)
    return Relocated(slot, slot.schedule_time if stays else places.first_free(instant), Obstacle.TAKEN)


class _Places:
    """The instants at which slots of an account stand."""

    def __init__(self, taken: Iterable[datetime]) -> None:
        self._taken = sorted(taken)

    def take(self, instant: datetime) -> None:
        insort(self._taken, instant)

    def is_free(self, instant: datetime) -> bool:
        return not self._near(instant)

    def first_free(self, instant: datetime) -> datetime:
        while near := self._near(instant):
            instant = near[-1] + SPACING
        return instant

    def _near(self, instant: datetime) -> Sequence[datetime]:
        """Those less than a minute away."""
        return self._taken[bisect_right(self._taken, instant - SPACING) : bisect_left(self._taken, instant + SPACING)]
