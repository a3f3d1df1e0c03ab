"""Rules in a real database: what is stored, announced, refused and remembered, and the targets of what is stored."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.weekly import WeeklySlot
from civil.zones import find_zone, tzdata_version
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.schedule_events_pb2 import ScheduleRuleChanged
from postflow.schedule.v1.schedule_rule_pb2 import ScheduleRule
from schedule_service.adapters.postgres import rules as store
from schedule_service.application.calendars.create_schedule_rule import CreateScheduleRule
from schedule_service.application.calendars.delete_schedule_rule import DeleteScheduleRule
from schedule_service.application.calendars.get_schedule_rule import GetScheduleRule
from schedule_service.application.calendars.list_rule_targets import ListRuleTargets
from schedule_service.application.calendars.list_schedule_rules import ListScheduleRules
from schedule_service.application.calendars.update_schedule_rule import UpdateScheduleRule
from schedule_service.domain.calendars.rule_targets import Span, TargetPage
from schedule_service.domain.calendars.schedule_rule import MOST_RULES, AssetPolicy, Terms
from schedule_service.wire import rules as wire
from servicekit.faults import AlreadyExists, Conflict, InvalidField, LimitReached, NotFound
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox, OutboxRow

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""
WEEKLY = Terms(
    name="Monday motivation",
    time_zone=find_zone("America/New_York"),
    weekly_slots=(WeeklySlot(day=0, hour=0, minute=0), WeeklySlot(day=6, hour=23, minute=59)),
    rrule="",
    start_time=None,
    start_date=None,
    end_date=date(2027, 12, 31),
    excluded_dates=(date(2026, 12, 25), date(2027, 1, 1)),
    channels=("facebook", "instagram_feed"),
    category_id="memes",
    asset_policy=AssetPolicy.REQUIRED,
    enabled=True,
)
BY_RRULE = replace(
    WEEKLY,
    weekly_slots=(),
    rrule="FREQ=MONTHLY;BYDAY=1TU",
    start_time=time(23, 59),
    start_date=date(2026, 3, 1),
    end_date=None,
    excluded_dates=(),
)


class SetClock(DatabaseClock):
    """The database's clock, as a test sets it."""

    def __init__(self) -> None:
        self.moment = START

    async def now(self, connection: AsyncConnection) -> datetime:
        return self.moment


class Announced:
    """Takes the place of the relay."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.events: list[ScheduleRuleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            (event,) = bus_pb2.Envelope.FromString(row.payload).events
            changed = ScheduleRuleChanged.FromString(event.payload)
            assert event.type == ScheduleRuleChanged.DESCRIPTOR.full_name
            assert event.organization_id == changed.organization_id
            assert event.aggregate_id == changed.schedule_rule.id
            self.subjects.append(row.subject)
            self.events.append(changed)


class WatchedRrule(str):
    """Tells which threads read it."""

    __slots__ = ("readers",)
    readers: set[int]

    def __new__(cls, value: str, readers: set[int]) -> "WatchedRrule":
        watched = super().__new__(cls, value)
        watched.readers = readers
        return watched

    def strip(self, characters: str | None = None, /) -> str:
        self.readers.add(threading.get_ident())
        return super().strip(characters)


class Rules:
    """The use cases, with what most calls leave alone."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = SetClock()
        self.announced = Announced()
        ids, ledger, clock = Uuid7Source(), RequestLedger(), self.clock
        outbox = Outbox(ids, self.announced.offer)
        self._create = CreateScheduleRule(database=database, clock=clock, ids=ids, ledger=ledger, outbox=outbox)
        self._get = GetScheduleRule(database)
        self._update = UpdateScheduleRule(database=database, clock=clock, ledger=ledger, outbox=outbox)
        self._delete = DeleteScheduleRule(database=database, clock=clock, ledger=ledger, outbox=outbox)
        self._list = ListScheduleRules(database)
        self._targets = ListRuleTargets(database=database, clock=clock)

    async def create(
        self,
        rule_id: str = "r1",
        terms: Terms = WEEKLY,
        *,
        brand_id: str = "brand",
        organization_id: str = "acme",
        request_id: str = "",
        digest: bytes = b"",
    ) -> ScheduleRule:
        key = self._key(organization_id, "Create", request_id, digest)
        return (await self._create(key, rule_id=rule_id, brand_id=brand_id, terms=terms)).schedule_rule

    async def get(self, rule_id: str = "r1", *, organization_id: str = "acme") -> ScheduleRule:
        return wire.shown(await self._get(organization_id=organization_id, rule_id=rule_id))

    async def update(
        self,
        rule_id: str = "r1",
        *,
        organization_id: str = "acme",
        etag: str = "",
        request_id: str = "",
        **changes: Any,
    ) -> ScheduleRule:
        key = self._key(organization_id, "Update", request_id, repr(changes).encode())
        return (await self._update(key, rule_id=rule_id, changes=changes, etag=etag)).schedule_rule

    async def delete(
        self, rule_id: str = "r1", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> None:
        await self._delete(self._key(organization_id, "Delete", request_id), rule_id=rule_id, etag=etag)

    async def ids(self, brand_id: str = "", after: str = "", size: int = 100, organization_id: str = "acme") -> str:
        rules = await self._list(organization_id=organization_id, brand_id=brand_id, after=after, size=size)
        return " ".join(rule.id for rule in rules)

    async def targets(self, brand_id: str = "brand", rest: Span | None = None, **asked: Any) -> TargetPage:
        given = {"organization_id": "acme", "after": None, "horizon": None, "size": 100} | asked
        return await self._targets(brand_id=brand_id, rest=rest, **given)

    def _key(self, organization_id: str, method: str, request_id: str, digest: bytes = b"") -> RequestKey:
        return RequestKey(organization_id=organization_id, method=method, request_id=request_id, request_digest=digest)


@pytest.fixture
def rules(schedule_database: Database) -> Rules:
    return Rules(schedule_database)


@pytest.mark.parametrize("terms", [WEEKLY, BY_RRULE, replace(BY_RRULE, start_time=time(0), enabled=False)])
async def test_a_rule_is_stored_as_its_maker_wants_it(rules: Rules, terms: Terms) -> None:
    answer = await rules.create(terms=terms)
    assert await rules.get() == answer
    async with rules.database.read() as connection:
        stored = await store.find(connection, "acme", "r1")
    assert stored is not None
    assert stored.terms == terms
    assert (stored.version, stored.etag, stored.brand_id) == (1, answer.etag, "brand")
    assert (stored.create_time, stored.update_time, stored.tzdata_version) == (START, START, tzdata_version())


async def test_a_rule_without_an_id_gets_one(rules: Rules) -> None:
    made = [(await rules.create("")).id for _ in range(2)]
    assert made == sorted(set(made))
    assert await rules.ids() == " ".join(made)


async def test_every_change_is_announced_as_a_whole(rules: Rules) -> None:
    created = await rules.create()
    updated = await rules.update(name="Other")
    await rules.delete()
    assert rules.announced.subjects == ["events.schedule.acme.schedule_rule"] * 3
    first, second, third = rules.announced.events
    assert (first.schedule_rule, first.deleted) == (created, False)
    assert (second.schedule_rule, second.deleted) == (updated, False)
    assert (third.schedule_rule.name, third.schedule_rule.version, third.deleted) == ("Other", 3, True)


async def test_what_is_there_already_is_not_announced_again(rules: Rules) -> None:
    created = await rules.create(terms=BY_RRULE)
    rules.clock.moment += timedelta(hours=1)
    assert await rules.update(name=BY_RRULE.name, rrule="BYDAY=1TU;FREQ=MONTHLY;INTERVAL=1") == created
    assert len(rules.announced.events) == 1
    assert await rules.get() == created


async def test_a_change_makes_a_new_version_with_another_etag(rules: Rules) -> None:
    created = await rules.create()
    rules.clock.moment += timedelta(hours=1)
    updated = await rules.update(excluded_dates=(), end_date=None, start_date=date(2026, 4, 1))
    assert (updated.version, list(updated.excluded_dates), updated.end_date) == (2, [], "")
    assert updated.start_date == "2026-04-01"
    assert updated.etag != created.etag
    assert (updated.create_time, updated.update_time.ToDatetime(UTC)) == (created.create_time, rules.clock.moment)
    assert await rules.get() == updated


async def test_a_rule_goes_from_one_kind_of_recurrence_to_the_other_and_back(rules: Rules) -> None:
    await rules.create()
    monthly = await rules.update(weekly_slots=(), rrule="FREQ=MONTHLY;BYMONTHDAY=-1", start_time=time(18))
    assert (monthly.start_date, monthly.start_time.hour, len(monthly.weekly_slots)) == ("2026-03-02", 18, 0)
    weekly = await rules.update(weekly_slots=WEEKLY.weekly_slots, rrule="")
    assert (weekly.rrule, weekly.HasField("start_time"), len(weekly.weekly_slots)) == ("", False, 2)


async def test_a_refused_change_leaves_no_trace(rules: Rules) -> None:
    created = await rules.create()
    with pytest.raises(InvalidField):
        await rules.update(name="Other", weekly_slots=(), request_id="q1")
    with pytest.raises(Conflict):
        await rules.update(name="Other", etag="0123456789abcdef", request_id="q1")
    with pytest.raises(Conflict):
        await rules.delete(etag="0123456789abcdef")
    assert await rules.get() == created
    assert len(rules.announced.events) == 1
    # Nor is the request remembered.
    assert (await rules.update(name="Other", etag=created.etag, request_id="q1")).version == 2


async def test_the_id_of_a_deleted_rule_is_not_used_again(rules: Rules) -> None:
    await rules.create()
    for _ in range(2):
        with pytest.raises(AlreadyExists) as refused:
            await rules.create(brand_id="other")
        assert (refused.value.reason, refused.value.metadata) == ("SCHEDULE_RULE_EXISTS", {"schedule_rule_id": "r1"})
        if await rules.ids():
            await rules.delete()
    assert len(rules.announced.events) == 2


async def test_a_rule_is_reckoned_beside_the_event_loop(rules: Rules) -> None:
    # A COUNT may be counted for a tenth of a second, for which no timer waits.
    readers: set[int] = set()
    made, changed = (WatchedRrule(f"FREQ=DAILY;BYMONTHDAY=7;COUNT={n}", readers) for n in (11, 12))
    await rules.create(terms=replace(BY_RRULE, rrule=made))
    await rules.update(rrule=changed)
    with pytest.raises(InvalidField):
        await rules.update(rrule=WatchedRrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=13", readers))
    assert readers
    assert threading.get_ident() not in readers


async def test_a_deleted_rule_is_gone(rules: Rules) -> None:
    await rules.create()
    assert (await rules.targets()).targets
    await rules.delete()
    for call in (rules.get(), rules.update(name="Other"), rules.delete()):
        with pytest.raises(NotFound) as refused:
            await call
        assert refused.value.reason == "SCHEDULE_RULE_NOT_FOUND"
    assert (await rules.ids(), await rules.ids("brand")) == ("", "")
    assert (await rules.targets()).targets == ()


async def test_a_repeated_request_gets_the_first_answer(rules: Rules) -> None:
    created = await rules.create("", request_id="q1")
    updated = await rules.update(created.id, name="Other", request_id="q1")
    await rules.delete(created.id, request_id="q1")
    assert await rules.create("", request_id="q1") == created
    assert await rules.update(created.id, name="Other", request_id="q1") == updated
    await rules.delete(created.id, request_id="q1")
    assert len(rules.announced.events) == 3
    with pytest.raises(InvalidField) as refused:
        await rules.create("", request_id="q1", digest=b"other")
    assert refused.value.reason == "REQUEST_ID_REUSED"


async def test_no_organization_sees_the_rules_of_another(rules: Rules) -> None:
    await rules.create()
    await rules.create(organization_id="umbrella", terms=replace(WEEKLY, name="Theirs"))
    assert [(await rules.get(organization_id=each)).name for each in ("acme", "umbrella")] == [WEEKLY.name, "Theirs"]
    await rules.delete(organization_id="umbrella")
    assert await rules.get()
    for call in (
        rules.get(organization_id="umbrella"),
        rules.update(organization_id="umbrella", name="Other"),
        rules.delete(organization_id="umbrella"),
    ):
        with pytest.raises(NotFound):
            await call
    assert (await rules.targets(organization_id="umbrella")).targets == ()
    assert await rules.ids(organization_id="umbrella") == ""


async def test_rules_are_listed_in_the_order_of_their_ids_of_all_brands_or_of_one(rules: Rules) -> None:
    for rule_id, brand in (("c", "x"), ("a", "y"), ("b", "x"), ("d", "y")):
        await rules.create(rule_id, brand_id=brand)
    assert await rules.ids() == "a b c d"
    assert await rules.ids("x") == "b c"
    assert await rules.ids(after="b", size=1) == "c"
    assert await rules.ids("y", after="a") == "d"
    assert await rules.ids("z") == ""


async def test_of_large_rules_no_more_are_read_than_an_answer_holds(rules: Rules) -> None:
    # Of two hundred of them an answer would show a dozen, and to read the others held up every other call.
    slots = tuple(
        WeeklySlot(day=day, hour=hour, minute=minute) for day in range(5) for hour in (10, 11) for minute in range(50)
    )
    dates = tuple(date(2027, 1, 1) + timedelta(days=n) for n in range(1000))
    made = [f"r{number:02}" for number in range(30)]
    for rule_id in made:
        await rules.create(rule_id, replace(WEEKLY, weekly_slots=slots, excluded_dates=dates))
    first = (await rules.ids(size=201)).split()
    assert 15 < len(first) < 25
    rest = (await rules.ids(size=201, after=first[-1], brand_id="brand")).split()
    assert first + rest == made


async def test_two_changes_at_a_time_are_two_versions(rules: Rules) -> None:
    await rules.create()
    async with asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(rules.update(name=f"n{n}"))
    assert sorted(each.schedule_rule.version for each in rules.announced.events) == list(range(1, 10))
    assert (await rules.get()).version == 9


async def test_a_brand_has_room_for_its_most_rules_however_many_are_made_at_a_time(rules: Rules) -> None:
    await rules.create("first", brand_id="full")
    async with rules.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into schedule_rule
                select organization_id, 'r' || n, brand_id, name, time_zone, weekly_slots, rrule, start_minute,
                    start_date, end_date, excluded_dates, channels, category_id, asset_policy, enabled,
                    tzdata_version, version, create_time, update_time, delete_time
                from schedule_rule, generate_series(2, :rules) as n
            """),
            {"rules": MOST_RULES - 2},
        )
    refused = []

    async def create(rule_id: str) -> None:
        try:
            await rules.create(rule_id, brand_id="full")
        except LimitReached as full:
            refused.append(full)

    async with asyncio.TaskGroup() as group:
        for n in range(4):
            group.create_task(create(f"late-{n}"))
    assert [(each.reason, each.metadata["limit"]) for each in refused] == [("RULES_PER_BRAND", "500")] * 2
    await rules.create("elsewhere", brand_id="other")
    await rules.delete("first")
    await rules.create("instead", brand_id="full")


async def test_the_law_that_a_rule_was_announced_with_is_kept(rules: Rules) -> None:
    await rules.create()
    await rules.update(time_zone=find_zone("Asia/Tokyo"))
    async with rules.database.read() as connection:
        kept = await connection.execute(text("select time_zone from zone_data order by time_zone"))
        assert kept.scalars().all() == ["America/New_York", "Asia/Tokyo"]


async def test_targets_are_those_of_the_brand_from_now_on_for_thirty_days(rules: Rules) -> None:
    await rules.create("r1")
    await rules.create("r2", BY_RRULE)
    await rules.create("off", replace(WEEKLY, enabled=False))
    await rules.create("theirs", brand_id="other")
    keys = [target.key for target in (await rules.targets()).targets]
    # A Saturday's minute to midnight is a minute before the Sunday's midnight, but for the one that is past.
    assert keys[:3] == ["r2/2026-03-03/23:59", "r1/2026-03-07/23:59", "r1/2026-03-08/00:00"]
    assert keys[-1] == "r1/2026-03-29/00:00"
    assert len(keys) == 9


async def test_every_rule_of_a_large_brand_has_its_targets(rules: Rules) -> None:
    sunday = replace(WEEKLY, weekly_slots=(WeeklySlot(day=0, hour=12, minute=0),))
    names = [f"r{n:03}" for n in range(103)]
    for name in names:
        await rules.create(name, sunday)
    page = await rules.targets(size=200)
    assert [target.key for target in page.targets[: len(names)]] == [f"{name}/2026-03-08/12:00" for name in names]


async def test_the_pages_of_a_listing_keep_to_the_span_of_the_first(rules: Rules) -> None:
    await rules.create()
    whole = (await rules.targets()).targets
    first = await rules.targets(size=3)
    assert first.rest is not None
    rules.clock.moment += timedelta(days=3)
    second = await rules.targets(rest=first.rest)
    assert first.targets + second.targets == whole
    assert second.rest is None


async def test_targets_of_a_gap_keep_their_names(rules: Rules) -> None:
    await rules.create(terms=replace(WEEKLY, weekly_slots=(WeeklySlot(day=0, hour=2, minute=30),)))
    (target,) = (await rules.targets(horizon=timedelta(days=7))).targets
    assert (target.key, target.instant) == ("r1/2026-03-08/02:30", datetime(2026, 3, 8, 7, 30, tzinfo=UTC))
    assert target.local == datetime(2026, 3, 8, 3, 30)
