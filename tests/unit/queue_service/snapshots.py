"""Queues to decide about: slots at hours of a day, named after their places."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import strategies as st

from civil.zones import tzdata_version
from queue_service.domain.account import AccountQueue, AnnouncedSchedule
from queue_service.domain.arrangement import Arrangement, SeatedSlot, Snapshot
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.frontier import Frontier
from queue_service.domain.seat import seat_at
from queue_service.domain.slot import SPACING, SlotOrigin, SlotState
from queue_service.domain.slot_times import SlotTimes

NOW = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = 24 * HOUR
ACCOUNT = ("acme", "page")
RELEASE = tzdata_version()
SCHEDULE = AnnouncedSchedule(
    organization_id="acme",
    social_account_id="page",
    version=1,
    time_zone="UTC",
    max_posts_per_day=0,
    enabled=True,
    tzdata_version=RELEASE,
)


def hour(number: float) -> datetime:
    return NOW + number * HOUR


def slot(
    name: str,
    time: datetime,
    origin: SlotOrigin = SlotOrigin.QUEUE,
    state: SlotState = SlotState.SCHEDULED,
    category: str = "",
) -> SeatedSlot:
    nominal = time.replace(tzinfo=None) if origin is SlotOrigin.QUEUE else None
    seat = seat_at(time, origin, "UTC", nominal=nominal, tzdata_version=RELEASE)
    return SeatedSlot(name, f"draft-{name}", state, seat, category)


def queue_of(*slots: SeatedSlot, cap: int = 0, frontier: Frontier | None = None) -> Snapshot:
    queue = AccountQueue(
        social_account_id="page",
        schedule_version=1,
        time_zone="UTC",
        max_posts_per_day=cap,
        enabled=True,
        frontier=frontier or Frontier(),
    )
    return Snapshot(account=ACCOUNT, queue=queue, slots=tuple(sorted(slots, key=lambda each: each.time)))


def hourly(until: float, *, last: bool = True) -> SlotTimes:
    """Returns a slot time each hour."""
    times = tuple(hour(number) for number in range(1, int(until)))
    nominals = tuple(time.replace(tzinfo=None) for time in times)
    return SlotTimes(
        schedule_version=1, after=NOW, until=hour(until), times=times, nominals=nominals, last=last, schedule=SCHEDULE
    )


def free(snapshot: Snapshot, until: float = 1000) -> FreeTimes:
    return FreeTimes(snapshot, {"": hourly(until), "news": replace(hourly(until), times=(), nominals=())})


def after(snapshot: Snapshot, arrangement: Arrangement) -> list[SeatedSlot]:
    """Returns the live slots as the arrangement leaves them, earliest first."""
    seats = {move.slot.slot_id: move.seat for move in arrangement.moves}
    gone = {each.slot.slot_id for each in arrangement.cancellations}
    kept = [each for each in snapshot.slots if each.slot_id not in gone]
    moved = [each._replace(seat=seats.get(each.slot_id, each.seat)) for each in kept]
    return sorted(moved, key=lambda each: each.time)


def names(slots: Sequence[SeatedSlot]) -> str:
    return " ".join(each.slot_id for each in slots)


def require_sound(snapshot: Snapshot, arrangement: Arrangement) -> None:
    """Asserts what every arrangement keeps."""
    moved = [move.slot.slot_id for move in arrangement.moves]
    assert len(set(moved)) == len(moved)
    assert all(move.slot.is_scheduled and move.seat != move.slot.seat for move in arrangement.moves)
    assert not set(moved) & {each.slot.slot_id for each in arrangement.cancellations}
    left = after(snapshot, arrangement)
    assert all(second.time - first.time >= SPACING for first, second in pairwise(left))


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draws queues with slots at hours, chosen times between them, dispatched ones, and two categories."""
    hours = sorted(draw(st.sets(st.integers(1, 40), max_size=14)))
    dispatched = draw(st.integers(0, 2))
    slots = []
    for place, number in enumerate(hours):
        origin = draw(st.sampled_from([SlotOrigin.QUEUE, SlotOrigin.QUEUE, SlotOrigin.EXACT, SlotOrigin.DRAFT]))
        state = SlotState.DISPATCHED if place < dispatched else SlotState.SCHEDULED
        time = hour(number) if origin is SlotOrigin.QUEUE else hour(number) + draw(st.integers(1, 58)) * SPACING
        slots.append(slot(f"s{place}", time, origin, state, draw(st.sampled_from(["", "", "news"]))))
    return queue_of(*slots)
