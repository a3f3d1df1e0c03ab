"""Compares rules with two other implementations: a plain walk over the days, and python-dateutil."""

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import accumulate, chain, groupby, islice, pairwise, product, takewhile
from typing import NamedTuple, TypeAlias

from dateutil import rrule as dateutil
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.recurrence import InvalidRecurrence, Recurrence, nominal_times, occurs, parse_recurrence

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MOST = 2000
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")


class Asked(NamedTuple):
    """The parts of a rule as numbers; a weekday is (its number or 0, 0 for Monday)."""

    frequency: str
    start: datetime
    interval: int = 1
    week_start: int = 0
    months: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    weekdays: tuple[tuple[int, int], ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    limit: int | None = None
    until: datetime | None = None

    @property
    def text(self) -> str:
        lists = {
            "BYMONTH": self.months,
            "BYWEEKNO": self.weeks,
            "BYYEARDAY": self.year_days,
            "BYMONTHDAY": self.month_days,
            "BYDAY": tuple(f"{n or ''}{DAYS[day]}" for n, day in self.weekdays),
            "BYHOUR": self.hours,
            "BYMINUTE": self.minutes,
            "BYSETPOS": self.positions,
        }
        parts = [f"FREQ={self.frequency}", f"INTERVAL={self.interval}", f"WKST={DAYS[self.week_start]}"]
        parts += [f"{name}={','.join(map(str, values))}" for name, values in lists.items() if values]
        parts += [f"COUNT={self.limit}"] if self.limit else []
        parts += [f"UNTIL={self.until:%Y%m%dT%H%M%S}"] if self.until else []
        return ";".join(parts)

    @property
    def recurrence(self) -> Recurrence:
        return parse_recurrence(self.text, start=self.start)


def by_walk(asked: Asked, until: datetime) -> Iterator[datetime]:
    """Walks day by day, from before the start, one period at a time."""
    first, last = date(asked.start.year - 1, 1, 1), date(until.year + 1, 1, 31)
    days = map(date.fromordinal, range(first.toordinal(), last.toordinal()))
    anchor = period_of(asked, asked.start)
    times = (shown for day in days for shown in shown_on(asked, day))
    periods = groupby(times, lambda shown: period_of(asked, shown))
    on_phase = (chosen(list(period), asked.positions) for n, period in periods if (n - anchor) % asked.interval == 0)
    found = (one for period in on_phase for one in period if one >= asked.start)
    return islice((one for one in found if asked.until is None or one <= asked.until), asked.limit)


def shown_on(asked: Asked, day: date) -> list[datetime]:
    hourly = asked.frequency == "HOURLY"
    hours = asked.hours or (range(24) if hourly else [asked.start.hour])
    minutes = asked.minutes or [asked.start.minute]
    times = sorted(time(hour, minute) for hour, minute in product(hours, minutes))
    return [datetime.combine(day, shown) for shown in times] if wanted(asked, day) else []


def wanted(asked: Asked, day: date) -> bool:
    start = asked.start.date()
    year_length = date(day.year, 12, 31).timetuple().tm_yday
    month_length = monthrange(day.year, day.month)[1]
    year_day = day.timetuple().tm_yday
    months, month_days, weekdays = asked.months, asked.month_days, asked.weekdays
    if not (asked.weeks or asked.year_days or month_days or weekdays):
        if asked.frequency == "YEARLY":
            months, month_days = months or (start.month,), (start.day,)
        if asked.frequency == "MONTHLY":
            month_days = (start.day,)
        if asked.frequency == "WEEKLY":
            weekdays = ((0, start.weekday()),)
    if asked.weeks and not (asked.year_days or month_days or weekdays):
        weekdays = ((0, start.weekday()),)
    numbers = {0}
    if asked.frequency == "YEARLY" and not asked.months:
        numbers |= {(year_day - 1) // 7 + 1, -((year_length - year_day) // 7) - 1}
    else:
        numbers |= {(day.day - 1) // 7 + 1, -((month_length - day.day) // 7) - 1}
    return (
        (not months or day.month in months)
        and (not asked.weeks or not week_numbers(asked, day).isdisjoint(asked.weeks))
        and (not asked.year_days or not {year_day, year_day - year_length - 1}.isdisjoint(asked.year_days))
        and (not month_days or not {day.day, day.day - month_length - 1}.isdisjoint(month_days))
        and (not weekdays or any(n in numbers and day.weekday() == weekday for n, weekday in weekdays))
    )


def week_numbers(asked: Asked, day: date) -> set[int]:
    """Returns the number of the week from the beginning of its year, and from the end."""
    year = day.year - 1
    while first_week(asked, year + 1) <= day:
        year += 1
    return {
        (day - first_week(asked, year)).days // 7 + 1,
        (day - first_week(asked, year + 1)).days // 7,
    }


def first_week(asked: Asked, year: int) -> date:
    """Returns the first day of the week that contains 4 January."""
    fourth = date(year, 1, 4)
    return fourth - timedelta(days=(fourth.weekday() - asked.week_start) % 7)


def period_of(asked: Asked, moment: datetime) -> int:
    days = moment.date().toordinal()
    return {
        "YEARLY": moment.year,
        "MONTHLY": moment.year * 12 + moment.month,
        "WEEKLY": (days - asked.week_start - 1) // 7,
        "DAILY": days,
        "HOURLY": days * 24 + moment.hour,
    }[asked.frequency]


def chosen(period: list[datetime], positions: tuple[int, ...]) -> list[datetime]:
    if not positions:
        return period
    return [one for n, one in enumerate(period) if n + 1 in positions or n - len(period) in positions]


def by_dateutil(asked: Asked, _until: datetime) -> Iterator[datetime]:
    """Asks python-dateutil, with two parts made explicit where it differs.

    A week without a day means the weekday of the start, and a position in the first week counts from the beginning of
    that week.
    """
    start = asked.start
    days: dict[str, object] = {}
    if asked.frequency == "WEEKLY" and asked.positions:
        start -= timedelta(days=(start.weekday() - asked.week_start) % 7)
    if not (asked.year_days or asked.month_days or asked.weekdays) and (asked.weeks or asked.frequency == "WEEKLY"):
        days["byweekday"] = asked.start.weekday()
    if asked.weekdays:
        days["byweekday"] = [dateutil.weekday(day, n) if n else day for n, day in asked.weekdays]
    rule = dateutil.rrule(
        FREQUENCIES.index(asked.frequency),  # type: ignore[arg-type]
        dtstart=start,
        interval=asked.interval,
        wkst=asked.week_start,
        until=asked.until,
        bymonth=asked.months or None,
        byweekno=asked.weeks or None,
        byyearday=asked.year_days or None,
        bymonthday=asked.month_days or None,
        byhour=asked.hours or None,
        byminute=asked.minutes or None,
        bysetpos=asked.positions or None,
        **days,  # type: ignore[arg-type]
    )
    return islice((one for one in rule if one >= asked.start), asked.limit)


def numbers(least: int, most: int, *, from_end: bool = False, size: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    some = st.integers(least, most)
    return st.sets(some | some.map(int.__neg__) if from_end else some, min_size=1, max_size=size).map(
        lambda found: tuple(sorted(found))
    )


@st.composite
def rules(draw: st.DrawFn, years: tuple[int, int], *, as_dateutil: bool = False) -> Asked:
    """Draws rules; `as_dateutil` leaves out those that python-dateutil gets wrong.

    To it BYDAY=MO,1FR means a day that is both, and BYWEEKNO=-53,-52 has no days in December that belong to the first
    week of the next year.
    """

    def sometimes(strategy: st.SearchStrategy[tuple[int, ...]], *, one_in: int = 3) -> tuple[int, ...]:
        return draw(strategy) if draw(st.integers(1, one_in)) == 1 else ()

    frequency = draw(st.sampled_from(FREQUENCIES))
    first, last = (datetime(year, 1, 1) for year in years)
    start = draw(st.datetimes(first, last)).replace(second=0, microsecond=0)
    weeks = sometimes(numbers(1, 53, from_end=True), one_in=4) if frequency == "YEARLY" else ()
    weeks = tuple(week for week in weeks if week > -52 or not as_dateutil)
    months = sometimes(numbers(1, 12))
    month_days = sometimes(numbers(1, 31, from_end=True)) if frequency != "WEEKLY" else ()
    year_days = sometimes(numbers(1, 366, from_end=True, size=9), one_in=5) if frequency in {"YEARLY", "HOURLY"} else ()
    weekdays: tuple[tuple[int, int], ...] = tuple((0, day) for day in sometimes(numbers(0, 6, size=7), one_in=2))
    if frequency in {"YEARLY", "MONTHLY"} and not weeks and not (as_dateutil and weekdays):
        most = 53 if frequency == "YEARLY" and not months else 5
        nth = st.tuples(st.integers(-most, most).filter(bool), st.integers(0, 6))
        weekdays += tuple(draw(st.lists(nth, max_size=3, unique=True)))
    hours = sometimes(numbers(0, 23))
    minutes = sometimes(numbers(0, 59))
    others = bool(weeks or months or month_days or year_days or weekdays or hours or minutes)
    asked = Asked(
        frequency=frequency,
        start=start,
        interval=draw(st.sampled_from([1, 1, 2, 3, 4, 7]) | st.integers(1, 60)),
        week_start=draw(st.sampled_from([0, 0, 6, *range(7)])),
        months=months,
        weeks=weeks,
        year_days=year_days,
        month_days=month_days,
        weekdays=weekdays,
        hours=hours,
        minutes=minutes,
        positions=sometimes(numbers(1, 10, from_end=True) | numbers(1, 366, from_end=True)) if others else (),
    )
    match draw(st.sampled_from(["forever", "forever", "count", "until"])):
        case "count":
            return asked._replace(limit=draw(st.integers(1, 40)))
        case "until":
            return asked._replace(until=start + timedelta(seconds=draw(st.integers(0, 10 * 366 * 86_400))))
    return asked


Reader: TypeAlias = Callable[[Asked, datetime], Iterator[datetime]]


def compare(asked: Asked, reader: Reader, first: datetime, until: datetime) -> None:
    """Compares the answers from the start on and from far behind it. A COUNT that is not reached must be refused."""
    expected = list(islice(takewhile(lambda found: found < until, reader(asked, until)), MOST))
    try:
        recurrence = asked.recurrence
    except InvalidRecurrence:
        assert asked.limit is not None
        assert len(expected) < asked.limit
        return
    assert list(islice(nominal_times(recurrence, first=asked.start, until=until), MOST)) == expected
    if len(expected) < MOST:
        far = list(nominal_times(recurrence, first=first, until=until))
        assert far == [found for found in expected if found >= first]


@settings(deadline=None, max_examples=400)
@given(rules((1990, 2080)), st.integers(0, 6 * 366), st.integers(0, 400))
def test_any_rule_against_a_walk_over_the_days(asked: Asked, away: int, length: int) -> None:
    first = asked.start + timedelta(days=away, minutes=away)
    compare(asked, by_walk, first, first + timedelta(days=length, minutes=1))


# Late starts: python-dateutil, which cannot be stopped, soon reaches the end of its calendar.
@settings(deadline=None, max_examples=400)
@given(rules((9965, 9985), as_dateutil=True), st.integers(0, 10 * 366), st.integers(0, 800))
def test_any_rule_against_dateutil(asked: Asked, away: int, length: int) -> None:
    first = min(asked.start + timedelta(days=away, minutes=away), datetime(9997, 12, 1))
    until = min(first + timedelta(days=length, minutes=1), datetime(9998, 1, 1))
    try:
        by_dateutil(asked, until)
    except ValueError:
        assert not occurs(asked._replace(limit=None).recurrence)
        return
    compare(asked, by_dateutil, first, until)


@settings(deadline=None, max_examples=200)
@given(rules((2000, 2030)), st.lists(st.integers(0, 1500), min_size=2, max_size=5))
def test_answers_of_neighbouring_periods_add_up(asked: Asked, lengths: list[int]) -> None:
    recurrence = asked._replace(limit=None).recurrence
    cuts = [asked.start + timedelta(days=days, minutes=days) for days in accumulate(lengths)]
    parts = [nominal_times(recurrence, first=first, until=until) for first, until in pairwise(cuts)]
    whole = list(nominal_times(recurrence, first=cuts[0], until=cuts[-1]))
    assert list(chain.from_iterable(parts)) == whole
    assert all(earlier < later for earlier, later in pairwise(whole))


@settings(deadline=None, max_examples=200)
@given(rules((2000, 2030)))
def test_a_normalised_text_parses_to_the_same_rule(asked: Asked) -> None:
    recurrence = asked._replace(limit=None).recurrence
    again = parse_recurrence(f"RRULE:{recurrence.text.lower()}", start=asked.start)
    assert (again, again.rule, again.last) == (recurrence, recurrence.rule, recurrence.last)


names = st.sampled_from(["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYSETPOS", "BYSECOND", "BYEASTER", ""])
values = st.text("0123456789,-+ZTMOWE=", max_size=12) | st.sampled_from(FREQUENCIES) | st.text(max_size=5)


@settings(deadline=None, max_examples=1000)
@given(st.text(max_size=30) | st.lists(st.builds("{}={}".format, names, values)).map(";".join))
def test_any_text_is_a_rule_or_refused_in_one_sentence(text: str) -> None:
    try:
        recurrence = parse_recurrence(text, start=datetime(2026, 1, 1, 9))
    except InvalidRecurrence as refusal:
        found = str(refusal)
    else:
        found = recurrence.text
        assert parse_recurrence(found, start=recurrence.start) == recurrence
    assert found.isprintable()
    assert len(found) < 250
