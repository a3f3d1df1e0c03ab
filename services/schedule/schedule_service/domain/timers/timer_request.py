"""What somebody who makes a timer says about it, and the timer that this makes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from civil.cron import Dst, InvalidCron, UnknownCronZone, firings, parse_cron
from civil.zones import DAY, EARLIEST, LATEST, UnknownZone, Zone, find_zone, tzdata_version
from schedule_service.domain.timers.timer import MisfirePolicy, Timer
from servicekit.faults import InvalidField

CATCH_UP_INTERVAL = timedelta(seconds=1)
SKIP_AFTER = timedelta(seconds=60)

_UTC = "UTC"
_FIVE_YEARS = 5 * 366 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """None: nothing is said of it. One of `fire_time`, `delay` and `cron`."""

    topic: str
    payload: bytes = b""
    fire_time: datetime | None = None
    delay: timedelta | None = None
    cron: str | None = None
    time_zone: str = ""
    dst_policy: Dst | None = None
    repeat_until: datetime | None = None
    misfire_policy: MisfirePolicy | None = None
    catch_up_interval: timedelta | None = None
    skip_after: timedelta | None = None
    auto_remove: bool = False


def created(organization_id: str, timer_id: str, wish: Wish, *, now: datetime, traceparent: str = "") -> Timer:
    _check_companions(wish)
    if wish.cron is None:
        cron, zone, fire_time = "", find_zone(_UTC), _once(wish, now)
        due = fire_time
    else:
        fire_time = None
        cron, zone = _expression(wish.cron, wish.time_zone)
        due = _first_firing(cron, zone, wish, now)
    return Timer(
        organization_id=organization_id,
        id=timer_id,
        topic=wish.topic,
        payload=wish.payload,
        fire_time=fire_time,
        cron=cron,
        zone=zone,
        dst_policy=wish.dst_policy or Dst.CRON,
        repeat_until=wish.repeat_until,
        misfire_policy=wish.misfire_policy or MisfirePolicy.FIRE_ONCE,
        catch_up_interval=CATCH_UP_INTERVAL if wish.catch_up_interval is None else wish.catch_up_interval,
        skip_after=SKIP_AFTER if wish.skip_after is None else wish.skip_after,
        auto_remove=wish.auto_remove,
        due_time=due,
        sleep_until=due,
        tzdata_version=tzdata_version(),
        # What fires for years would be traced for years.
        traceparent="" if cron else traceparent,
        create_time=now,
        update_time=now,
    )


def _check_companions(wish: Wish) -> None:
    """What means something only beside something else is not passed over in silence."""
    if wish.cron is None:
        for field in ("time_zone", "dst_policy", "repeat_until"):
            if getattr(wish, field):
                raise InvalidField(f"timer.{field}", "goes only with `cron`")
    if wish.catch_up_interval is not None and wish.misfire_policy is not MisfirePolicy.FIRE_ALL:
        raise InvalidField("timer.catch_up_interval", "goes only with the misfire policy FIRE_ALL")
    if wish.skip_after is not None and wish.misfire_policy is not MisfirePolicy.SKIP:
        raise InvalidField("timer.skip_after", "goes only with the misfire policy SKIP")


def _once(wish: Wish, now: datetime) -> datetime:
    if wish.delay is not None:
        return now + wish.delay
    if wish.fire_time is None:
        raise InvalidField("timer.schedule", "one of `fire_time`, `delay` and `cron` is required")
    if not EARLIEST <= wish.fire_time < LATEST:
        raise InvalidField("timer.fire_time", f"must be an instant of the years {EARLIEST.year} to {LATEST.year - 1}")
    return wish.fire_time


def _expression(text: str, time_zone: str) -> tuple[str, Zone]:
    """The expression without a zone of its own, and the zone."""
    try:
        cron = parse_cron(text)
    except UnknownCronZone as unknown:
        raise InvalidField("timer.cron", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown
    except InvalidCron as invalid:
        raise InvalidField("timer.cron", str(invalid)) from invalid
    if cron.zone_name is None:
        return text, _zone(time_zone or _UTC)
    if time_zone:
        raise InvalidField("timer.time_zone", "the expression names a zone itself: one of the two is enough")
    return text.partition(" ")[2].strip(), find_zone(cron.zone_name)


def _zone(name: str) -> Zone:
    try:
        return find_zone(name)
    except UnknownZone as unknown:
        raise InvalidField("timer.time_zone", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def _first_firing(text: str, zone: Zone, wish: Wish, now: datetime) -> datetime:
    cron, dst = parse_cron(text), wish.dst_policy or Dst.CRON
    first = next((firing.instant for firing in firings(cron, zone, after=now, dst=dst)), None)
    # The firings of fields end there by themselves.
    if first is None or (cron.every is not None and cron.every > _FIVE_YEARS):
        raise InvalidField("timer.cron", "does not fire within five years")
    if wish.repeat_until is not None and wish.repeat_until < first:
        raise InvalidField("timer.repeat_until", f"is before the first firing, at {first.isoformat()}")
    return first
