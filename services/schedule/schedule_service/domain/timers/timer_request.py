"""The contents of a request for a timer, and the timer created from it."""

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
class TimerRequest:
    """The fields that a caller gives: one of `fire_time`, `delay` and `cron`. None: not given."""

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


def created(
    organization_id: str, timer_id: str, request: TimerRequest, *, now: datetime, traceparent: str = ""
) -> Timer:
    _check_companions(request)
    if request.cron is None:
        cron, zone, fire_time = "", find_zone(_UTC), _once(request, now)
        due = fire_time
    else:
        fire_time = None
        cron, zone = _expression(request.cron, request.time_zone)
        due = _first_firing(cron, zone, request, now)
    return Timer(
        organization_id=organization_id,
        id=timer_id,
        topic=request.topic,
        payload=request.payload,
        fire_time=fire_time,
        cron=cron,
        zone=zone,
        dst_policy=request.dst_policy or Dst.CRON,
        repeat_until=request.repeat_until,
        misfire_policy=request.misfire_policy or MisfirePolicy.FIRE_ONCE,
        catch_up_interval=CATCH_UP_INTERVAL if request.catch_up_interval is None else request.catch_up_interval,
        skip_after=SKIP_AFTER if request.skip_after is None else request.skip_after,
        auto_remove=request.auto_remove,
        due_time=due,
        sleep_until=due,
        tzdata_version=tzdata_version(),
        # A recurring timer would be traced for years.
        traceparent="" if cron else traceparent,
        create_time=now,
        update_time=now,
    )


def _check_companions(request: TimerRequest) -> None:
    """Refuses a field that has no effect without another one."""
    if request.cron is None:
        for field in ("time_zone", "dst_policy", "repeat_until"):
            if getattr(request, field):
                raise InvalidField(f"timer.{field}", "is valid only with `cron`")
    if request.catch_up_interval is not None and request.misfire_policy is not MisfirePolicy.FIRE_ALL:
        raise InvalidField("timer.catch_up_interval", "is valid only with the misfire policy FIRE_ALL")
    if request.skip_after is not None and request.misfire_policy is not MisfirePolicy.SKIP:
        raise InvalidField("timer.skip_after", "is valid only with the misfire policy SKIP")


def _once(request: TimerRequest, now: datetime) -> datetime:
    if request.delay is not None:
        return now + request.delay
    if request.fire_time is None:
        raise InvalidField("timer.schedule", "one of `fire_time`, `delay` and `cron` is required")
    if not EARLIEST <= request.fire_time < LATEST:
        raise InvalidField("timer.fire_time", f"must be an instant of the years {EARLIEST.year} to {LATEST.year - 1}")
    return request.fire_time


def _expression(text: str, time_zone: str) -> tuple[str, Zone]:
    """Splits the zone off the expression."""
    try:
        cron = parse_cron(text)
    except UnknownCronZone as unknown:
        raise InvalidField("timer.cron", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown
    except InvalidCron as invalid:
        raise InvalidField("timer.cron", str(invalid)) from invalid
    if cron.zone_name is None:
        return text, _zone(time_zone or _UTC)
    if time_zone:
        raise InvalidField("timer.time_zone", "the expression names a zone too: give only one of the two")
    return text.partition(" ")[2].strip(), find_zone(cron.zone_name)


def _zone(name: str) -> Zone:
    try:
        return find_zone(name)
    except UnknownZone as unknown:
        raise InvalidField("timer.time_zone", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def _first_firing(text: str, zone: Zone, request: TimerRequest, now: datetime) -> datetime:
    cron, dst = parse_cron(text), request.dst_policy or Dst.CRON
    first = next((firing.instant for firing in firings(cron, zone, after=now, dst=dst)), None)
    # The search for the next firing of a cron expression ends after five years by itself.
    if first is None or (cron.every is not None and cron.every > _FIVE_YEARS):
        raise InvalidField("timer.cron", "does not fire within five years")
    if request.repeat_until is not None and request.repeat_until < first:
        raise InvalidField("timer.repeat_until", f"is before the first firing, at {first.isoformat()}")
    return first
