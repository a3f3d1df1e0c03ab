"""The free slot times of an account as decisions see them: one after the other, each given once."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime, timedelta

from civil.days import local_day
from civil.zones import DAY, Zone, find_zone, tzdata_version, zone_names
from queue_service.domain.account import AccountQueue
from queue_service.domain.arrangement import SeatedSlot, Snapshot
from queue_service.domain.seat import Seat, seat_at
from queue_service.domain.slot import HORIZON, SPACING, SlotOrigin
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, Refused, Unavailable


class MoreTimes(Exception):
    """A decision needs slot times from `start` on that have not been read, or that are outdated."""

    def __init__(self, start: datetime) -> None:
        super().__init__(f"slot times from {start} on are needed")
        self.start = start


class FreeTimes:
    """Free slot times of one account.

    `read` are the slot times as far as they have been read, or why they could not be; None if nobody has asked.
    """

    def __init__(self, snapshot: Snapshot, read: SlotTimes | Fault | None) -> None:
        self._snapshot = snapshot
        self._read = read

    def seats(self, start: datetime, *, leaving: Collection[SeatedSlot] = ()) -> Iterator[Seat]:
        """Yields free seats from `start` on, in order. The slots in `leaving` do not fill the times that they have.

        Refuses when there is none left within the horizon, and without an enabled schedule.
        """
        begin = self._begin(start, leaving)
        times = self._require_times(begin)
        taken = _Taken(self._snapshot, leaving)
        # A new schedule that was read with the times has been saved, so the queue is the one they belong to.
        queue = self._snapshot.queue
        release = min(times.tzdata_version, tzdata_version())
        for index in range(bisect_left(times.times, begin), len(times.times)):
            time = times.times[index]
            if taken.is_free(time):
                taken.take(time)
                nominal = times.nominals[index]
                yield seat_at(time, SlotOrigin.QUEUE, queue.time_zone, nominal=nominal, tzdata_version=release)
        if not times.last:
            raise MoreTimes(begin)
        raise exhausted(queue)

    def _begin(self, start: datetime, leaving: Collection[SeatedSlot]) -> datetime:
        """Returns where the search begins: it skips what is known to be filled, unless a slot leaves its time there."""
        skipped_to = self._snapshot.queue.frontier.next_open(start)
        margin = 2 * DAY if self._snapshot.queue.max_posts_per_day else SPACING
        left = min((slot.time - margin for slot in leaving), default=skipped_to)
        return max(start, min(skipped_to, left))

    def _require_times(self, begin: datetime) -> SlotTimes:
        read, queue = self._read, self._snapshot.queue
        if read is None:
            raise MoreTimes(begin)
        if isinstance(read, Fault):
            raise read
        if read.schedule_version > queue.schedule_version:
            # The cap is unknown: Schedule runs the previous release, which announces the cap by events only.
            raise schedule_changing()
        if read.schedule_version < queue.schedule_version or begin < read.after:
            raise MoreTimes(begin)
        require_schedule(queue)
        return read


class _Taken:
    """The instants at which an account's slots are, and how many of them count towards each day's cap."""

    def __init__(self, snapshot: Snapshot, leaving: Collection[SeatedSlot]) -> None:
        gone = {slot.slot_id for slot in leaving}
        live = [slot.time for slot in snapshot.slots if slot.slot_id not in gone]
        self._times = sorted([*live, *snapshot.queue.skipped_times])
        self._cap = snapshot.queue.max_posts_per_day
        self._zone: Zone = find_zone(snapshot.queue.time_zone)
        counted = [*live, *snapshot.counted] if self._cap else ()
        self._by_day = Counter[date](local_day(time, self._zone) for time in counted)

    def is_free(self, time: datetime) -> bool:
        nearest = bisect_right(self._times, time - SPACING)
        if nearest < len(self._times) and self._times[nearest] < time + SPACING:
            return False
        return not self._cap or self._by_day[local_day(time, self._zone)] < self._cap

    def take(self, time: datetime) -> None:
        insort(self._times, time)
        if self._cap:
            self._by_day[local_day(time, self._zone)] += 1


def reseat(slots: Iterable[SeatedSlot], seats: Iterator[Seat]) -> list[tuple[SeatedSlot, Seat]]:
    """Gives the slots the next seats, in their order."""
    return [(slot, next(seats)) for slot in slots]


def paced(
    slots: Iterable[SeatedSlot], others: Iterable[datetime], time_zone: str, *, first: datetime, pace: timedelta
) -> list[tuple[SeatedSlot, Seat]]:
    """Gives the slots times from `first` on, at least `pace` apart and a minute away from the `others`."""
    taken = sorted(others)
    placed: list[tuple[SeatedSlot, Seat]] = []
    time = first
    for slot in slots:
        time = _apart(time, taken)
        seat = seat_at(time, slot.seat.origin, time_zone, tzdata_version=tzdata_version())
        placed.append((slot, seat))
        time += pace
    return placed


def _apart(time: datetime, taken: list[datetime]) -> datetime:
    """Returns the first time from this one on that is at least a minute away from all of those taken."""
    near = bisect_right(taken, time - SPACING)
    while near < len(taken) and taken[near] < time + SPACING:
        time = taken[near] + SPACING
        near += 1
    return time


def require_schedule(queue: AccountQueue) -> None:
    """Refuses a queue without slot times."""
    account = queue.social_account_id
    if not queue.enabled:
        raise _refused("SCHEDULE_DISABLED", f"the schedule of account {account} is disabled", account)
    if queue.time_zone not in zone_names():
        raise zone_unknown(queue)


def schedule_changing() -> Unavailable:
    return Unavailable(
        "SCHEDULE_CHANGING", "the schedule of an account is changing; try again", retry_after=timedelta(seconds=1)
    )


def no_schedule(social_account_id: str) -> Refused:
    return _refused("NO_SCHEDULE", f"account {social_account_id} has no schedule", social_account_id)


def exhausted(queue: AccountQueue) -> Refused:
    account = queue.social_account_id
    return _refused("HORIZON_EXHAUSTED", f"account {account} has no free slot within {HORIZON.days} days", account)


def zone_unknown(queue: AccountQueue) -> Refused:
    """Refuses like Schedule, which does so once it has this tzdata release, too."""
    account, zone, release = queue.social_account_id, queue.time_zone, tzdata_version()
    return Refused(
        "UNKNOWN_TIME_ZONE",
        f"the schedule of account {account} is in {zone!r}, which tzdata {release} does not have; choose another "
        "time_zone",
        metadata={"social_account_id": account, "time_zone": zone, "tzdata_version": release},
    )


def _refused(reason: str, message: str, social_account_id: str) -> Refused:
    return Refused(reason, message, metadata={"social_account_id": social_account_id})
