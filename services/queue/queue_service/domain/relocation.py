"""Moving slots whose instants were computed with older time zone data than the data in force.

A weekly slot means a wall-clock time. When a government changes its clocks, that time becomes another instant, and the
slot moves there if it can.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import NamedTuple

from civil.wall_clock import resolve
from civil.zones import find_zone, zone_names
from queue_service.domain.slot import SPACING, MoveReason


class OutdatedAccount(NamedTuple):
    """An account some of whose slots may have been computed with older data than that of the release."""

    organization_id: str
    social_account_id: str
    tzdata_version: str


class OutdatedSlot(NamedTuple):
    """A slot that is not dispatched yet, with an instant computed with older data."""

    organization_id: str
    social_account_id: str
    slot_id: str
    schedule_time: datetime
    not_after: datetime
    time_zone: str
    nominal: datetime | None
    """The wall-clock time; None for an instant of the caller's choice."""


class Obstacle(StrEnum):
    """The reason why a slot cannot have its wall-clock time."""

    NONE = ""
    # Another slot has that time.
    TAKEN = "TAKEN"
    # The local date does not exist any more.
    NO_SUCH_DATE = "NO_SUCH_DATE"
    # The zone does not exist any more.
    NO_SUCH_ZONE = "NO_SUCH_ZONE"


class Relocated(NamedTuple):
    slot: OutdatedSlot
    schedule_time: datetime
    obstacle: Obstacle = Obstacle.NONE

    @property
    def is_moved(self) -> bool:
        return self.schedule_time != self.slot.schedule_time

    @property
    def not_after(self) -> datetime:
        """The latest time moves with the slot, which may be as late as before."""
        return self.slot.not_after + (self.schedule_time - self.slot.schedule_time)

    @property
    def local_date(self) -> date | None:
        """None leaves it as it was."""
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
    """A slot with its new time and everything that is announced about it."""

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
    reason: MoveReason
    # As (channel, destination).
    targets: tuple[tuple[str, str], ...]


def relocate(slots: Iterable[OutdatedSlot], others: Iterable[datetime], *, earliest: datetime) -> list[Relocated]:
    """Gives the outdated slots of one account their new times, between the instants of its `others`.

    A slot gets the instant of its wall-clock time if that is free. If it is taken, the slot keeps its old instant or,
    if another slot needs that one, moves to the next free minute after its new instant. If the new instant is before
    `earliest`, the slot gets the next possible one. No slot is moved to a time before `earliest`.
    """
    places = _Places(others)
    relocated: list[Relocated] = []
    moving: list[tuple[datetime, OutdatedSlot]] = []
    for slot in slots:
        instant = _nominal_instant(slot)
        if instant is None or instant == slot.schedule_time:
            places.take(slot.schedule_time)
            relocated.append(Relocated(slot, slot.schedule_time, Obstacle.NONE if instant else _obstacle(slot)))
        else:
            moving.append((instant, slot))
    unplaced: list[tuple[datetime, OutdatedSlot]] = []
    for instant, slot in sorted(moving):
        if instant >= earliest and places.is_free(instant):
            places.take(instant)
            relocated.append(Relocated(slot, instant))
        else:
            unplaced.append((instant, slot))
    for instant, slot in unplaced:
        found = (
            _as_soon_as_possible(slot, instant, earliest, places)
            if instant < earliest
            else _aside(slot, instant, places)
        )
        places.take(found.schedule_time)
        relocated.append(found)
    return relocated


def _nominal_instant(slot: OutdatedSlot) -> datetime | None:
    if slot.nominal is None:
        return slot.schedule_time
    if slot.time_zone not in zone_names():
        return None
    resolved = resolve(slot.nominal, find_zone(slot.time_zone))
    return resolved.instant if resolved else None


def _obstacle(slot: OutdatedSlot) -> Obstacle:
    """Returns why the wall-clock time of a slot has no instant, if it has none."""
    return Obstacle.NO_SUCH_DATE if slot.time_zone in zone_names() else Obstacle.NO_SUCH_ZONE


def _as_soon_as_possible(slot: OutdatedSlot, instant: datetime, earliest: datetime, places: "_Places") -> Relocated:
    place = places.first_free(earliest)
    # The slot is late already: it is sent sooner at its old instant.
    if instant <= slot.schedule_time <= place and places.is_free(slot.schedule_time):
        place = slot.schedule_time
    return Relocated(slot, place)


def _aside(slot: OutdatedSlot, instant: datetime, places: "_Places") -> Relocated:
    stays = places.is_free(slot.schedule_time)
    return Relocated(slot, slot.schedule_time if stays else places.first_free(instant), Obstacle.TAKEN)


class _Places:
    """The instants of an account's slots."""

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
        """Returns the instants less than a minute away."""
        return self._taken[bisect_right(self._taken, instant - SPACING) : bisect_left(self._taken, instant + SPACING)]
