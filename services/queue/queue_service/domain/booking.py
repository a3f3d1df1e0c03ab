"""Making a slot for a draft at a place in an account's queue."""

from datetime import UTC, datetime, timedelta

from queue_service.domain.account import AccountQueue
from queue_service.domain.draft import Draft
from queue_service.domain.seat import seat_at
from queue_service.domain.slot import HORIZON, BlockingSlot, QueueSlot, SlotOrigin, SlotState, SlotTarget
from servicekit.faults import InvalidField, Refused
from servicekit.record import record

# How far in the past an exact time may lie, because clocks differ and requests take time.
TOLERANCE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@record(frozen=True, slots=True, kw_only=True)
class Place:
    """A free instant in the queue of an account, and where it comes from."""

    queue: AccountQueue
    schedule_time: datetime
    origin: SlotOrigin
    # The wall-clock time of the weekly slot; None for a time of the caller's choice, or if it is unknown.
    nominal: datetime | None = None
    # The tzdata release that converted between the instant and the local time.
    tzdata_version: str
    # The sequence of the account's newest slot, if that is not stored yet.
    last_sequence: int = 0


def check_exact_time(schedule_time: datetime, now: datetime) -> None:
    if schedule_time < now - TOLERANCE:
        raise InvalidField("schedule_time", "is more than a minute ago")
    if schedule_time > now + HORIZON:
        raise InvalidField("schedule_time", f"is more than {HORIZON.days} days ahead")


def slot_taken(blocking: BlockingSlot) -> Refused:
    message = f"account {blocking.social_account_id} has a slot less than a minute away"
    return Refused("SLOT_TAKEN", message, metadata=blocking.metadata)


def next_sequence(last: int, now: datetime) -> int:
    """Returns the sequence of an account's next slot, after `last`.

    Sequences keep growing when a clock steps back, and after a restore from a backup whose last sequence is too small.
    """
    return max(last + 1, (now - _EPOCH) // _MICROSECOND)


def book(
    draft: Draft, place: Place, *, slot_id: str, not_after: datetime, traceparent: str, now: datetime
) -> QueueSlot:
    """Makes a slot."""
    zone, release = place.queue.time_zone, place.tzdata_version
    seat = seat_at(place.schedule_time, place.origin, zone, nominal=place.nominal, tzdata_version=release)
    targets = draft.targets_on(place.queue.social_account_id)
    return QueueSlot(
        organization_id=draft.organization_id,
        id=slot_id,
        draft_id=draft.id,
        social_account_id=place.queue.social_account_id,
        schedule_time=seat.time,
        state=SlotState.SCHEDULED,
        origin=seat.origin,
        revision=1,
        sequence=next_sequence(max(place.queue.last_sequence, place.last_sequence), now),
        targets=tuple(SlotTarget(channel=target.channel, destination=target.destination) for target in targets),
        not_after=not_after,
        time_zone=seat.time_zone,
        local_date=seat.local_date,
        local_time=seat.local_time,
        content_revision=draft.revision,
        traceparent=traceparent,
        create_time=now,
        update_time=now,
        nominal=seat.nominal,
        tzdata_version=seat.tzdata_version,
    )
