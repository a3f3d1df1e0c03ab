"""When the next slot or timer is due, in UTC: civil against croniter, APScheduler and dateutil, on the same questions.

That all of them give the same answers is checked first; the questions lie away from the jumps of the clocks.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from statistics import mean
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from dateutil.rrule import MO, WEEKLY, rrule

from benchmarks.result import Result
from civil.cron import firings, parse_cron
from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone

_ZONES = ("America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca")
_NOW = datetime(2026, 3, 2, 10, 10, tzinfo=UTC)
_ASKED_AT = [_NOW + timedelta(days=9.7) * n for n in range(40)]
_IN_A_ROW = 100
_ROUNDS = 25

_Ways = Mapping[str, Callable[[], list[datetime]]]
"""By whose code the same answers are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Week:
    """Slots of a week, and how the others put them."""

    name: str
    slots: Sequence[WeeklySlot]
    crontab: str
    rule: Mapping[str, Any]


_WEEKS = (
    _Week(
        name="14 slots a week",
        slots=[WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in (9, 18)],
        crontab="0 9,18 * * *",
        rule={"freq": WEEKLY, "byweekday": range(7), "byhour": (9, 18), "byminute": 0, "bysecond": 0},
    ),
    _Week(
        name="1 slot a week",
        slots=[WeeklySlot(day=1, hour=9, minute=0)],
        crontab="0 9 * * mon",
        rule={"freq": WEEKLY, "byweekday": MO, "byhour": 9, "byminute": 0, "bysecond": 0},
    ),
)
_CRONTABS = ("*/15 * * * *", "30 9 * * mon-fri", "0 12 1 * *", "0 12 29 2 *")
_TARGETS = {"croniter": 10.0, "APScheduler": 10.0, "dateutil": 2.0}


def measure() -> list[Result]:
    results = []
    for week in _WEEKS:
        results += _compared(f"{week.name}, one after the other", [_in_a_row(week, zone) for zone in _ZONES], _TARGETS)
        results += _compared(f"{week.name}, the next from anywhere", [_next(week, zone) for zone in _ZONES], {})
    for crontab in _CRONTABS:
        results += _compared(f"cron {crontab}, the next", [_next_firing(crontab, zone) for zone in _ZONES], {})
    never, zone = parse_cron("0 0 30 2 *"), find_zone("Europe/Berlin")
    nothing = {"civil": lambda: [firing.instant for firing in firings(never, zone, after=_NOW)]}
    return [
        *results,
        Result(name="calendar: cron that never fires, the search", value=_best(nothing)["civil"] * 1e6, unit="us"),
    ]


def _in_a_row(week: _Week, name: str) -> _Ways:
    """Each asked in the way in which it goes on most cheaply."""
    zone, info = find_zone(name), ZoneInfo(name)
    local = _NOW.astimezone(info)

    def ours() -> list[datetime]:
        return [found.instant for found in islice(occurrences(week.slots, zone, after=_NOW), _IN_A_ROW)]

    def of_croniter() -> list[datetime]:
        found = croniter(week.crontab, local)
        return [found.get_next(datetime).astimezone(UTC) for _ in range(_IN_A_ROW)]

    def of_apscheduler() -> list[datetime]:
        trigger, last, found = CronTrigger.from_crontab(week.crontab, info), None, []
        for _ in range(_IN_A_ROW):
            last = trigger.get_next_fire_time(last, last or local)
            found.append(last.astimezone(UTC))
        return found

    def of_dateutil() -> list[datetime]:
        rule = rrule(dtstart=local.replace(tzinfo=None), **week.rule)
        return [found.replace(tzinfo=info).astimezone(UTC) for found in islice(rule, _IN_A_ROW)]

    return {"civil": ours, "croniter": of_croniter, "APScheduler": of_apscheduler, "dateutil": of_dateutil}


def _next(week: _Week, name: str) -> _Ways:
    """From what is stored: slots here, expressions and rules there."""
    zone, info = find_zone(name), ZoneInfo(name)

    def ours() -> list[datetime]:
        return [next(occurrences(week.slots, zone, after=after)).instant for after in _ASKED_AT]

    def of_croniter() -> list[datetime]:
        asked = (croniter(week.crontab, after.astimezone(info)) for after in _ASKED_AT)
        return [found.get_next(datetime).astimezone(UTC) for found in asked]

    def of_apscheduler() -> list[datetime]:
        asked = ((CronTrigger.from_crontab(week.crontab, info), after.astimezone(info)) for after in _ASKED_AT)
        return [trigger.get_next_fire_time(None, local).astimezone(UTC) for trigger, local in asked]

    def of_dateutil() -> list[datetime]:
        asked = (rrule(dtstart=after.astimezone(info).replace(tzinfo=None), **week.rule) for after in _ASKED_AT)
        return [next(iter(rule)).replace(tzinfo=info).astimezone(UTC) for rule in asked]

    return {"civil": ours, "croniter": of_croniter, "APScheduler": of_apscheduler, "dateutil": of_dateutil}


def _next_firing(crontab: str, name: str) -> _Ways:
    """From a parsed expression, which each of them keeps."""
    zone, info = find_zone(name), ZoneInfo(name)
    cron, trigger = parse_cron(crontab), CronTrigger.from_crontab(crontab, info)
    iterator = croniter(crontab, _NOW.astimezone(info))

    def ours() -> list[datetime]:
        return [next(firings(cron, zone, after=after)).instant for after in _ASKED_AT]

    def of_croniter() -> list[datetime]:
        asked = (after.astimezone(info) for after in _ASKED_AT)
        return [iterator.get_next(datetime, start_time=local).astimezone(UTC) for local in asked]

    def of_apscheduler() -> list[datetime]:
        asked = (after.astimezone(info) for after in _ASKED_AT)
        return [trigger.get_next_fire_time(None, local).astimezone(UTC) for local in asked]

    return {"civil": ours, "croniter": of_croniter, "APScheduler": of_apscheduler}


def _compared(name: str, zones: Sequence[_Ways], targets: Mapping[str, float]) -> list[Result]:
    """One figure for each of them, the mean over the zones, and how many times ours goes into the others'."""
    costs = [_cost_of_an_answer(ways) for ways in zones]
    each = {who: mean(cost[who] for cost in costs) for who in zones[0]}
    ours = each.pop("civil")
    return [
        Result(name=f"calendar: {name}", value=ours, unit="us"),
        *(Result(name=f"calendar: {name}, {who}", value=cost, unit="us") for who, cost in each.items()),
        *(
            Result(
                name=f"calendar: {name}, {who} / civil",
                value=cost / ours,
                unit="times",
                baseline=targets.get(who),
                note="target, at least" if who in targets else "",
            )
            for who, cost in each.items()
        ),
    ]


def _cost_of_an_answer(ways: _Ways) -> dict[str, float]:
    """In microseconds."""
    answers = {who: way() for who, way in ways.items()}
    for who, found in answers.items():
        assert found == answers["civil"], f"{who} answers otherwise"
    return {who: seconds / len(answers[who]) * 1e6 for who, seconds in _best(ways).items()}


def _best(ways: _Ways) -> dict[str, float]:
    """Seconds of the quickest round; in a round each has its turn."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(_ROUNDS):
        for who, way in ways.items():
            started = time.perf_counter()
            way()
            best[who] = min(best[who], time.perf_counter() - started)
    return best
