"""Compares civil with croniter, APScheduler and dateutil: when the next slot or timer is due, in UTC.

All must give the same answers first; the questions are about times away from jumps of the clocks.
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
"""The same question, by library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Week:
    """Slots of a week, and their equivalents for the other libraries."""

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
_TARGETS = {"croniter": 0.1, "APScheduler": 0.1, "dateutil": 0.5}


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
    """Asks each library in its cheapest way to continue."""
    zone, info = find_zone(name), ZoneInfo(name)
    local = _NOW.astimezone(info)

    def by_civil() -> list[datetime]:
        return [found.instant for found in islice(occurrences(week.slots, zone, after=_NOW), _IN_A_ROW)]

    def by_croniter() -> list[datetime]:
        found = croniter(week.crontab, local)
        return [found.get_next(datetime).astimezone(UTC) for _ in range(_IN_A_ROW)]

    def by_apscheduler() -> list[datetime]:
        trigger, last, found = CronTrigger.from_crontab(week.crontab, info), None, []
        for _ in range(_IN_A_ROW):
            last = trigger.get_next_fire_time(last, last or local)
            found.append(last.astimezone(UTC))
        return found

    def by_dateutil() -> list[datetime]:
        rule = rrule(dtstart=local.replace(tzinfo=None), **week.rule)
        return [found.replace(tzinfo=info).astimezone(UTC) for found in islice(rule, _IN_A_ROW)]

    return {"civil": by_civil, "croniter": by_croniter, "APScheduler": by_apscheduler, "dateutil": by_dateutil}


def _next(week: _Week, name: str) -> _Ways:
    """Asks from stored values: slots for civil, expressions and rules for the others."""
    zone, info = find_zone(name), ZoneInfo(name)

    def by_civil() -> list[datetime]:
        return [next(occurrences(week.slots, zone, after=after)).instant for after in _ASKED_AT]

    def by_croniter() -> list[datetime]:
        asked = (croniter(week.crontab, after.astimezone(info)) for after in _ASKED_AT)
        return [found.get_next(datetime).astimezone(UTC) for found in asked]

    def by_apscheduler() -> list[datetime]:
        asked = ((CronTrigger.from_crontab(week.crontab, info), after.astimezone(info)) for after in _ASKED_AT)
        return [trigger.get_next_fire_time(None, local).astimezone(UTC) for trigger, local in asked]

    def by_dateutil() -> list[datetime]:
        asked = (rrule(dtstart=after.astimezone(info).replace(tzinfo=None), **week.rule) for after in _ASKED_AT)
        return [next(iter(rule)).replace(tzinfo=info).astimezone(UTC) for rule in asked]

    return {"civil": by_civil, "croniter": by_croniter, "APScheduler": by_apscheduler, "dateutil": by_dateutil}


def _next_firing(crontab: str, name: str) -> _Ways:
    """Asks from a parsed expression."""
    zone, info = find_zone(name), ZoneInfo(name)
    cron, trigger = parse_cron(crontab), CronTrigger.from_crontab(crontab, info)
    iterator = croniter(crontab, _NOW.astimezone(info))

    def by_civil() -> list[datetime]:
        return [next(firings(cron, zone, after=after)).instant for after in _ASKED_AT]

    def by_croniter() -> list[datetime]:
        asked = (after.astimezone(info) for after in _ASKED_AT)
        return [iterator.get_next(datetime, start_time=local).astimezone(UTC) for local in asked]

    def by_apscheduler() -> list[datetime]:
        asked = (after.astimezone(info) for after in _ASKED_AT)
        return [trigger.get_next_fire_time(None, local).astimezone(UTC) for local in asked]

    return {"civil": by_civil, "croniter": by_croniter, "APScheduler": by_apscheduler}


def _compared(name: str, zones: Sequence[_Ways], targets: Mapping[str, float]) -> list[Result]:
    """Returns civil's mean cost over the zones beside that of each other library."""
    costs = [_cost_of_an_answer(ways) for ways in zones]
    means = {library: mean(cost[library] for cost in costs) for library in zones[0]}
    civil = means.pop("civil")
    return [
        Result(
            name=f"calendar: {name}, against {library}",
            value=civil,
            unit="us",
            baseline=cost,
            note=f"target at most {targets[library]:.2f}" if library in targets else "",
        )
        for library, cost in means.items()
    ]


def _cost_of_an_answer(ways: _Ways) -> dict[str, float]:
    """Returns microseconds."""
    answers = {library: way() for library, way in ways.items()}
    for library, found in answers.items():
        assert found == answers["civil"], f"{library} gives other answers"
    return {library: seconds / len(answers[library]) * 1e6 for library, seconds in _best(ways).items()}


def _best(ways: _Ways) -> dict[str, float]:
    """Returns the seconds of the fastest round; each library has a turn in every round."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(_ROUNDS):
        for library, way in ways.items():
            started = time.perf_counter()
            way()
            best[library] = min(best[library], time.perf_counter() - started)
    return best
