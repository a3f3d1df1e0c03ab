"""A new law of a zone: what it moves is listed, and announced anew exactly once."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.cron import Dst, firings, parse_cron
from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone, tzdata_version, zone_data, zone_from_data
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, ScheduleRuleChanged
from schedule_service.adapters.postgres import account_schedules, rules, timers, upcoming_slots
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.zone_changes.apply_zone_changes import AppliedZoneChanges, ApplyZoneChanges
from schedule_service.application.zone_changes.list_zone_changes import ListZoneChanges, Position
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Timetable, created, deleted
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.domain.timers.timer import Timer
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.domain.timers.timer_request import created as created_timer
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import Kind, ZoneChange
from schedule_service.domain.zone_release import ZoneRelease
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox, OutboxRow
from testkit.clocks import FrozenClock
from testkit.compiled_zones import compiled_zone

OLD = "2024a"
NEW = tzdata_version()
NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=500)

VANCOUVER = "America/Vancouver"
# Until 2026 clocks in Vancouver went back in November; since then they stay.
VANCOUVER_LAW = compiled_zone("PST8PDT,M3.2.0,M11.1.0", offset=timedelta(hours=-8))
BERLIN = "Europe/Berlin"
# The same law in other bytes.
BERLIN_LAW = zone_data(BERLIN).replace(b"LMT", b"XYZ")

MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)
# Monday 09:00 of the first winter without winter time.
MOVED = MovedTime(
    datetime(2026, 11, 2, 9, 0), datetime(2026, 11, 2, 17, 0, tzinfo=UTC), datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
)


class SetClock(DatabaseClock):
    def __init__(self) -> None:
        self.moment = NOW

    async def now(self, connection: AsyncConnection) -> datetime:
        return self.moment


class News:
    """Takes the place of the relay: what has been announced, by id."""

    def __init__(self) -> None:
        self.schedules: list[AccountScheduleChanged] = []
        self.rules: list[ScheduleRuleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            (event,) = bus_pb2.Envelope.FromString(row.payload).events
            if event.type == AccountScheduleChanged.DESCRIPTOR.full_name:
                self.schedules.append(AccountScheduleChanged.FromString(event.payload))
            else:
                assert event.type == ScheduleRuleChanged.DESCRIPTOR.full_name
                self.rules.append(ScheduleRuleChanged.FromString(event.payload))


class Drift:
    def __init__(self, database: Database) -> None:
        self.database, self.clock, self.news, self.process_clock = database, SetClock(), News(), FrozenClock()
        self.outbox = Outbox(Uuid7Source(), self.news.offer)
        self._list = ListZoneChanges(database=database, clock=self.clock)
        self._apply = ApplyZoneChanges(
            database=database, clock=self.clock, outbox=self.outbox, process_clock=self.process_clock
        )
        self._put = PutAccountSchedule(database=database, clock=self.clock, ledger=RequestLedger(), outbox=self.outbox)

    async def record(self, zone: str, law: bytes, release: str = OLD) -> None:
        statement = text("insert into zone_data values (:release, :zone, :law) on conflict do nothing")
        async with self.database.transaction() as tx:
            await tx.connection.execute(statement, {"release": release, "zone": zone, "law": law})

    async def schedule(
        self,
        account: str = "page",
        zone: str = VANCOUVER,
        *,
        organization: str = "acme",
        release: str = OLD,
        **terms: object,
    ) -> AccountSchedule:
        given = {
            "name": "",
            "zone": find_zone(zone),
            "weekly_slots": (MONDAY_NINE,),
            "max_posts_per_day": 0,
            "enabled": True,
        }
        made = created(organization, account, Timetable(**(given | terms)), now=LONG_AGO)  # type: ignore[arg-type]
        made = replace(made, tzdata_version=release)
        async with self.database.transaction() as tx:
            await account_schedules.save(tx.connection, made)
        return made

    async def rule(
        self,
        rule_id: str = "rule",
        zone: str = VANCOUVER,
        *,
        organization: str = "acme",
        release: str = OLD,
        **changes: object,
    ) -> ScheduleRule:
        terms = Terms(
            name="",
            time_zone=find_zone(zone),
            weekly_slots=(MONDAY_NINE,),
            rrule="",
            start_time=None,
            start_date=None,
            end_date=None,
            excluded_dates=(),
            channels=("facebook",),
            category_id="",
            asset_policy=AssetPolicy.OPTIONAL,
            enabled=True,
        )
        made = ScheduleRule(
            organization_id=organization,
            id=rule_id,
            brand_id="brand",
            terms=replace(terms, **changes),  # type: ignore[arg-type]
            version=1,
            create_time=LONG_AGO,
            update_time=LONG_AGO,
            tzdata_version=release,
        )
        async with self.database.transaction() as tx:
            assert await rules.insert(tx.connection, made)
        return made

    async def timer(
        self,
        timer_id: str = "timer",
        *,
        organization: str = "acme",
        release: str = OLD,
        law: bytes = VANCOUVER_LAW,
        **changes: object,
    ) -> Timer:
        request = TimerRequest(topic="t", cron="0 9 * * 1", time_zone=VANCOUVER, dst_policy=Dst.ONCE)
        made = created_timer(organization, timer_id, request, now=NOW)
        zone = zone_from_data(VANCOUVER, law)
        after = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
        due = next(firings(parse_cron("0 9 * * 1"), zone, after=after, dst=Dst.ONCE)).instant
        made = replace(made, due_time=due, sleep_until=due, tzdata_version=release)
        made = replace(made, **changes)  # type: ignore[arg-type]
        async with self.database.transaction() as tx:
            assert await timers.insert(tx.connection, made)
        return made

    async def listed(self, organization: str = "", *, size: int = 200) -> list[ZoneChange]:
        """On as many pages as it takes."""
        changes: list[ZoneChange] = []
        after: Position | None = None
        while True:
            page = await self._list(organization_id=organization, after=after, size=size)
            assert len(page.changes) <= size
            changes += page.changes
            after = page.last
            if after is None:
                return changes

    async def apply(self, organization: str = "", *, patience: float = float("inf")) -> AppliedZoneChanges:
        async with asyncio.timeout(30):
            return await self._apply(organization_id=organization, patience=patience)

    async def put(self, account: str, **terms: object) -> None:
        given = {
            "name": "put",
            "zone": find_zone(VANCOUVER),
            "weekly_slots": (MONDAY_NINE,),
            "max_posts_per_day": 0,
            "enabled": True,
        }
        key = RequestKey(organization_id="acme", method="Put", request_id="", request_digest=b"")
        await self._put(key, social_account_id=account, timetable=Timetable(**(given | terms)), etag="")  # type: ignore[arg-type]

    async def stored_schedule(self, account: str = "page", organization: str = "acme") -> AccountSchedule:
        async with self.database.read() as connection:
            found = await account_schedules.find(connection, organization, account)
        assert found is not None
        return found

    async def stored_rule(self, rule_id: str = "rule") -> ScheduleRule:
        async with self.database.read() as connection:
            found = await rules.find(connection, "acme", rule_id)
        assert found is not None
        return found

    async def stored_timer(self, timer_id: str = "timer") -> Timer:
        async with self.database.read() as connection:
            found = await timers.find(connection, "acme", timer_id)
        assert found is not None
        return found


@pytest.fixture
async def drift(schedule_database: Database) -> Drift:
    drift = Drift(schedule_database)
    await drift.record(VANCOUVER, VANCOUVER_LAW)
    await drift.record(BERLIN, BERLIN_LAW)
    return drift


def ids(changes: Sequence[ZoneChange]) -> list[tuple[str, str, str]]:
    return [(change.kind, *change.place) for change in changes]


# What is listed


async def test_exactly_the_schedules_whose_times_move_are_listed(drift: Drift) -> None:
    await drift.schedule("moves")
    await drift.schedule("off", enabled=False)
    await drift.schedule("berlin", BERLIN)
    await drift.schedule("empty", weekly_slots=())
    await drift.schedule("current", release=NEW)
    async with drift.database.transaction() as tx:
        gone = deleted(await drift.schedule("deleted"), now=NOW)
        await account_schedules.save(tx.connection, gone)
    changes = await drift.listed()
    assert ids(changes) == [("ACCOUNT_SCHEDULE", "acme", "moves"), ("ACCOUNT_SCHEDULE", "acme", "off")]
    assert changes[0].zone_release == (OLD, VANCOUVER)
    assert changes[0].moved_times[0] == MOVED
    assert len(changes[0].moved_times) == 10
    assert {moved.old - moved.new for moved in changes[0].moved_times if moved.old and moved.new} == {
        timedelta(hours=1)
    }


async def test_a_law_that_differs_where_no_slot_is_moves_nothing(drift: Drift) -> None:
    """Summer once ended two hours later; all other changes of the clocks are the same."""
    summer, winter = timedelta(hours=2), timedelta(hours=1)
    ends = [(datetime(2026, 10, 25, 3, tzinfo=UTC), winter)]
    law = compiled_zone("CET-1CEST,M3.5.0,M10.5.0/3", offset=summer, changes=ends)
    await drift.record(BERLIN, law, "2025b")
    await drift.schedule("monday", BERLIN, release="2025b")
    await drift.schedule("sunday", BERLIN, release="2025b", weekly_slots=(WeeklySlot(day=0, hour=3, minute=30),))
    (change,) = await drift.listed()
    assert change.moved_times == (
        MovedTime(
            datetime(2026, 10, 25, 3, 30),
            datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
            datetime(2026, 10, 25, 2, 30, tzinfo=UTC),
        ),
    )
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [each.account_schedule.social_account_id for each in drift.news.schedules] == ["sunday"]
    assert (await drift.stored_schedule("monday")).tzdata_version == NEW


async def test_a_schedule_with_nothing_but_a_window_moves_with_the_window(drift: Drift) -> None:
    window = SendWindow(days=frozenset({1}), start=time(9), end=None)
    await drift.schedule(weekly_slots=(), send_window=window)
    (change,) = await drift.listed()
    assert change.moved_times[0] == MOVED
    assert change.moved_times[1].nominal == datetime(2026, 11, 3, 0, 0)


async def test_posts_at_slots_that_a_schedule_had_before_are_reason_enough(drift: Drift) -> None:
    await drift.schedule(weekly_slots=())
    slot = UpcomingSlot(
        organization_id="acme", slot_id="s", social_account_id="page", revision=1, schedule_time=NOW + timedelta(days=2)
    )
    async with drift.database.transaction() as tx:
        await upcoming_slots.save(tx.connection, [slot])
    assert await drift.listed() == []
    in_winter = replace(slot, revision=2, schedule_time=NOW + timedelta(days=40))
    async with drift.database.transaction() as tx:
        await upcoming_slots.save(tx.connection, [in_winter])
    (change,) = await drift.listed()
    assert change.moved_times == ()
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert len(drift.news.schedules) == 1


async def hears(drift: Drift, nominal: datetime | None, at: datetime, zone: str = VANCOUVER, **changes: object) -> None:
    """Of a slot of Queue's."""
    slot = UpcomingSlot(
        organization_id="acme",
        slot_id="s",
        social_account_id="page",
        revision=1,
        schedule_time=at,
        time_zone=zone,
        nominal=nominal,
    )
    async with drift.database.transaction() as tx:
        await upcoming_slots.save(tx.connection, [replace(slot, **changes)])  # type: ignore[arg-type]


async def is_of(drift: Drift, release: str, account: str = "page") -> None:
    """The last change of the schedule was announced by a process of that release."""
    statement = text("update account_schedule set tzdata_version = :release where social_account_id = :account")
    async with drift.database.transaction() as tx:
        await tx.connection.execute(statement, {"release": release, "account": account})


async def test_posts_in_a_zone_that_a_schedule_no_longer_has_move_too(drift: Drift) -> None:
    nominal, old, new = MOVED
    assert old is not None
    assert new is not None
    await drift.schedule()
    await drift.put("page", zone=find_zone(BERLIN))
    await is_of(drift, OLD)
    assert await drift.listed() == []
    await hears(drift, nominal, old)
    (change,) = await drift.listed()
    assert (change.zone_release, change.moved_times) == (ZoneRelease(OLD, BERLIN), ())
    assert await drift.listed("umbrella") == []
    drift.news.schedules.clear()
    assert (await drift.apply("acme")).moved[Kind.ACCOUNT_SCHEDULE] == 1
    (news,) = drift.news.schedules
    assert (news.account_schedule.version, news.account_schedule.tzdata_version, news.deleted) == (3, NEW, False)
    assert await drift.listed() == []

    await is_of(drift, OLD)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    await hears(drift, nominal, new, revision=2)
    assert await drift.listed() == []
    assert (await drift.apply()).moved.total() == 0
    assert (await drift.stored_schedule()).tzdata_version == NEW


async def test_posts_of_a_deleted_schedule_move_too(drift: Drift) -> None:
    nominal, old, new = MOVED
    assert old is not None
    assert new is not None
    gone = deleted(await drift.schedule(), now=LONG_AGO)
    async with drift.database.transaction() as tx:
        await account_schedules.save(tx.connection, gone)
    assert await drift.listed() == []
    await hears(drift, nominal, NOW - timedelta(minutes=1), slot_id="past")
    await hears(drift, None, old, slot_id="exact")
    assert await drift.listed() == []
    await hears(drift, nominal, old)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    (news,) = drift.news.schedules
    assert (news.account_schedule.version, news.account_schedule.tzdata_version, news.deleted) == (3, NEW, True)
    assert await drift.listed() == []
    assert not (await drift.apply()).moved

    await drift.put("page")
    await is_of(drift, OLD)
    await hears(drift, nominal, new, revision=2)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]  # by its own weekly slots


async def test_accounts_with_posts_in_other_zones_are_listed_among_the_others(drift: Drift) -> None:
    nominal, old, _ = MOVED
    assert old is not None
    accounts = [f"page-{number}" for number in range(6)]
    for number, account in enumerate(accounts):
        await drift.schedule(account)
        if number % 2:
            await drift.put(account, zone=find_zone(BERLIN))
            await is_of(drift, OLD, account)
            await hears(drift, nominal, old, slot_id=account, social_account_id=account)
    for size in (1, 2, 3, 200):
        assert [change.place.id for change in await drift.listed(size=size)] == accounts


async def test_a_post_whose_instant_a_law_makes_the_second_pass_moves_to_the_first(drift: Drift) -> None:
    """Clocks in Berlin went back on the 18th, now on the 25th: the laws differ until then, the post stands behind."""
    release, law = "2025a", compiled_zone("CET-1CEST,M3.5.0,M10.3.0/3", offset=timedelta(hours=1))
    await drift.record(BERLIN, law, release)
    await drift.schedule(zone=BERLIN, release=release, weekly_slots=())
    before, behind = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    await hears(drift, datetime(2026, 10, 25, 2, 30), behind, BERLIN)
    assert len(await drift.listed()) == 1
    await hears(drift, None, behind, BERLIN, revision=2)
    assert await drift.listed() == []
    await hears(drift, None, before, BERLIN, revision=3)  # an instant keeps its instant, but shows another time
    assert len(await drift.listed()) == 1


async def test_rules_move_by_their_own_targets(drift: Drift) -> None:
    await drift.rule("weekly")
    await drift.rule(
        "monthly", weekly_slots=(), rrule="FREQ=MONTHLY;BYDAY=1TU;BYHOUR=9;BYMINUTE=30", start_date=date(2026, 1, 1)
    )
    await drift.rule("ended", end_date=date(2026, 10, 31))
    await drift.rule("later", start_date=date(2028, 1, 1))
    first_mondays = (date(2026, 11, 2), date(2026, 11, 9))
    await drift.rule("excluded", excluded_dates=first_mondays)
    await drift.rule(
        "summers",
        weekly_slots=(),
        rrule="FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=0",
        start_date=date(2026, 1, 1),
    )
    changes = {change.place.id: change for change in await drift.listed()}
    assert changes.keys() == {"weekly", "monthly", "later", "excluded"}
    assert changes["weekly"].moved_times[0] == MOVED
    assert [moved.nominal for moved in changes["monthly"].moved_times[:2]] == [
        datetime(2026, 11, 3, 9, 30),
        datetime(2026, 12, 1, 9, 30),
    ]
    assert changes["later"].moved_times[0].nominal == datetime(2028, 1, 3, 9, 0)
    assert changes["excluded"].moved_times[0].nominal == datetime(2026, 11, 16, 9, 0)
    assert all(change.kind is Kind.SCHEDULE_RULE for change in changes.values())


async def test_a_timer_is_listed_with_the_time_that_it_waits_for(drift: Drift) -> None:
    await drift.timer()
    (change,) = await drift.listed()
    assert (change.kind, change.place, change.zone_release) == (Kind.TIMER, ("acme", "timer"), (OLD, VANCOUVER))
    assert change.moved_times == (MOVED,)


async def test_timers_that_no_law_moves_are_not_listed(drift: Drift) -> None:
    due = NOW + timedelta(days=30)
    once = replace(created_timer("acme", "once", TimerRequest(topic="t", fire_time=due), now=NOW), tzdata_version=OLD)
    request = TimerRequest(topic="t", cron="@every 1h", time_zone=VANCOUVER)
    every = replace(created_timer("acme", "every", request, now=NOW), tzdata_version=OLD)
    async with drift.database.transaction() as tx:
        for timer in (once, every):
            assert await timers.insert(tx.connection, timer)
    await drift.timer("in-hand", fence=1)
    drift.clock.moment = datetime(2026, 11, 2, 17, 0, 1, tzinfo=UTC)
    assert await drift.listed() == []


async def test_pages_lead_through_kinds_organizations_and_ids_without_a_gap(drift: Drift) -> None:
    expected = []
    for organization in ("acme", "umbrella", "wayne"):
        for number in range(3):
            await drift.schedule(f"page-{number}", organization=organization)
            await drift.schedule(f"still-{number}", BERLIN, organization=organization)
            await drift.rule(f"rule-{number}", organization=organization)
            await drift.timer(f"timer-{number}", organization=organization)
            expected += [
                ("ACCOUNT_SCHEDULE", organization, f"page-{number}"),
                ("SCHEDULE_RULE", organization, f"rule-{number}"),
                ("TIMER", organization, f"timer-{number}"),
            ]
    for size in (1, 2, 3, 7, 26, 27, 28, 200):
        assert ids(await drift.listed(size=size)) == sorted(expected)
    for size in (1, 4, 9, 10):
        assert ids(await drift.listed("umbrella", size=size)) == [
            each for each in sorted(expected) if each[1] == "umbrella"
        ]
    assert await drift.listed("nobody") == []


async def test_what_was_put_under_the_new_law_is_not_listed(drift: Drift) -> None:
    await drift.schedule("page")
    await drift.schedule("other")
    await drift.put("page", max_posts_per_day=3)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "other")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [
        (each.account_schedule.social_account_id, each.account_schedule.version) for each in drift.news.schedules
    ] == [
        ("page", 2),
        ("other", 2),
    ]


# What is announced


async def test_what_has_moved_is_announced_once_and_the_rest_is_only_marked(drift: Drift) -> None:
    before = await drift.schedule("page")
    still = await drift.schedule("still", BERLIN)
    empty = await drift.schedule("empty", weekly_slots=())
    rule, timer = await drift.rule(), await drift.timer()
    applied = await drift.apply()
    assert applied.done
    assert applied.moved == {Kind.ACCOUNT_SCHEDULE: 1, Kind.SCHEDULE_RULE: 1, Kind.TIMER: 1}

    (schedule_news,) = drift.news.schedules
    announced = schedule_news.account_schedule
    assert (announced.social_account_id, announced.version, announced.tzdata_version) == ("page", 2, NEW)
    assert not schedule_news.deleted
    (rule_news,) = drift.news.rules
    assert (rule_news.schedule_rule.version, rule_news.schedule_rule.tzdata_version) == (2, NEW)

    assert await drift.stored_schedule() == replace(before, version=2, tzdata_version=NEW, update_time=NOW)
    assert await drift.stored_schedule("still") == replace(still, tzdata_version=NEW)
    assert await drift.stored_schedule("empty") == replace(empty, tzdata_version=NEW)
    assert await drift.stored_rule() == replace(rule, version=2, tzdata_version=NEW, update_time=NOW)
    moved = await drift.stored_timer()
    assert moved == replace(timer, due_time=MOVED.new, sleep_until=MOVED.new, tzdata_version=NEW, fence=moved.fence)
    assert moved.fence > timer.fence

    assert await drift.listed() == []
    again = await drift.apply()
    assert (again.done, again.moved.total()) == (True, 0)
    assert len(drift.news.schedules) == len(drift.news.rules) == 1
    assert (await drift.stored_schedule()).version == 2


async def test_an_organization_is_applied_to_by_itself(drift: Drift) -> None:
    for organization in ("acme", "umbrella"):
        await drift.schedule(organization=organization)
        await drift.schedule("still", BERLIN, organization=organization)
    assert (await drift.apply("umbrella")).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [each.organization_id for each in drift.news.schedules] == ["umbrella"]
    assert (await drift.stored_schedule("still")).tzdata_version == OLD
    assert (await drift.stored_schedule("still", "umbrella")).tzdata_version == NEW
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]


async def test_the_laws_that_things_now_follow_are_recorded(drift: Drift) -> None:
    await drift.schedule()
    await drift.schedule("still", BERLIN)
    await drift.apply()
    async with drift.database.read() as connection:
        recorded = await connection.execute(
            text("select time_zone, data from zone_data where tzdata_version = :new"), {"new": NEW}
        )
        assert {row.time_zone: row.data for row in recorded} == {zone: zone_data(zone) for zone in (VANCOUVER, BERLIN)}


async def test_a_call_whose_time_is_up_says_so_and_another_goes_on(drift: Drift) -> None:
    for number in range(450):
        await drift.schedule(f"page-{number:03}")
    calls = [await drift.apply(patience=0.0) for _ in range(4)]
    assert [call.moved[Kind.ACCOUNT_SCHEDULE] for call in calls] == [200, 200, 50, 0]
    assert [call.done for call in calls] == [False, False, False, True]
    names = [each.account_schedule.social_account_id for each in drift.news.schedules]
    assert len(names) == len(set(names)) == 450


async def test_operators_and_users_at_once_announce_each_schedule_once(drift: Drift) -> None:
    accounts = [f"page-{number:03}" for number in range(250)]
    for account in accounts:
        await drift.schedule(account)
    for number in range(30):
        await drift.rule(f"rule-{number}")
        await drift.timer(f"timer-{number}")
    touched = accounts[::10]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(drift.apply()) for _ in range(2)]
        for account in touched:
            group.create_task(drift.put(account))
    moved = calls[0].result().moved + calls[1].result().moved
    assert moved[Kind.SCHEDULE_RULE] == moved[Kind.TIMER] == 30
    versions: dict[str, list[int]] = {account: [] for account in accounts}
    for each in drift.news.schedules:
        assert each.account_schedule.tzdata_version == NEW
        versions[each.account_schedule.social_account_id].append(each.account_schedule.version)
    for account, announced in versions.items():
        # A put announces its change, whether before or after.
        assert sorted(announced) in ([[2], [2, 3]] if account in touched else [[2]])
    assert moved[Kind.ACCOUNT_SCHEDULE] == sum(map(len, versions.values())) - len(touched)
    assert len({each.schedule_rule.id for each in drift.news.rules}) == len(drift.news.rules) == 30
    assert await drift.listed() == []


async def test_two_releases_back_is_compared_with_its_own_law(drift: Drift) -> None:
    await drift.record(VANCOUVER, zone_data(VANCOUVER), "2026a")
    await drift.schedule("old")
    await drift.schedule("newer", release="2026a")
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "old")]
    await drift.apply()
    assert (await drift.stored_schedule("newer")).version == 1
    assert (await drift.stored_schedule("newer")).tzdata_version == NEW


async def test_what_a_newer_release_announced_is_left_alone(drift: Drift) -> None:
    """While processes are replaced, those of before do not turn back what those of after have announced."""
    await drift.record(VANCOUVER, VANCOUVER_LAW, "2031a")
    schedule, rule = await drift.schedule(release="2031a"), await drift.rule(release="2031a")
    timer = await drift.timer(release="2031a")
    assert await drift.listed() == []
    applied = await drift.apply()
    assert (applied.done, applied.moved.total()) == (True, 0)
    assert (await drift.stored_schedule(), await drift.stored_rule()) == (schedule, rule)
    assert await drift.stored_timer() == timer


# Timers


async def test_a_paused_timer_moves_and_stays_paused(drift: Drift) -> None:
    await drift.timer(paused=True, sleep_until=None)
    assert (await drift.apply()).moved[Kind.TIMER] == 1
    timer = await drift.stored_timer()
    assert (timer.due_time, timer.sleep_until, timer.paused) == (MOVED.new, None, True)


async def test_a_timer_that_fires_at_this_moment_keeps_its_occurrence(drift: Drift) -> None:
    timer = await drift.timer()
    drift.clock.moment = datetime(2026, 11, 2, 17, 0, 1, tzinfo=UTC)
    applied = await drift.apply()
    assert (applied.done, applied.moved[Kind.TIMER]) == (True, 0)
    assert await drift.stored_timer() == timer


async def test_a_timer_that_does_not_move_is_marked_and_its_firing_goes_on(drift: Drift) -> None:
    due = datetime(2026, 10, 26, 16, 0, tzinfo=UTC)
    timer = await drift.timer(fence=7)
    async with drift.database.transaction() as tx:
        await tx.connection.execute(text("update timer set due_time = :due, sleep_until = :due"), {"due": due})
    assert await drift.listed() == []
    assert (await drift.apply()).moved[Kind.TIMER] == 0
    assert await drift.stored_timer() == replace(timer, due_time=due, sleep_until=due, tzdata_version=NEW)


# What nobody knows


@pytest.mark.parametrize("law", [None, b"not a zone"])
async def test_a_law_that_is_not_known_may_have_moved_anything(drift: Drift, law: bytes | None) -> None:
    if law:
        await drift.record(BERLIN, law, "2020a")
    await drift.schedule("lost", BERLIN, release="2020a")
    await drift.rule("lost", BERLIN, release="2020a")
    timer = await drift.timer(release="2020a", law=zone_data(VANCOUVER))
    changes = await drift.listed()
    assert ids(changes) == [("ACCOUNT_SCHEDULE", "acme", "lost"), ("SCHEDULE_RULE", "acme", "lost")]
    assert {change.moved_times for change in changes} == {()}
    applied = await drift.apply()
    assert applied.moved == {Kind.ACCOUNT_SCHEDULE: 1, Kind.SCHEDULE_RULE: 1, Kind.TIMER: 0}
    assert (await drift.stored_schedule("lost")).version == 2
    assert await drift.stored_timer() == replace(timer, tzdata_version=NEW)
    assert await drift.listed() == []


@pytest.mark.parametrize("release", [OLD, ""])
async def test_a_zone_that_is_no_more_keeps_no_other_from_being_applied(
    drift: Drift, release: str, caplog: pytest.LogCaptureFixture
) -> None:
    await drift.schedule("gone", release=release)
    await drift.schedule("page")
    statement = text("update account_schedule set time_zone = 'US/Pacific-New' where social_account_id = 'gone'")
    async with drift.database.transaction() as tx:
        await tx.connection.execute(statement)
    with caplog.at_level(logging.ERROR):
        assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    assert "US/Pacific-New" in caplog.text
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    watch = WatchTzdata(database=drift.database)
    assert not await watch()


async def in_dropped_zone(drift: Drift, account: str) -> None:
    """It had a post in Vancouver before."""
    nominal, old, _ = MOVED
    assert old is not None
    await drift.schedule(account)
    await drift.put(account, zone=find_zone(BERLIN))
    await is_of(drift, OLD, account)
    await hears(drift, nominal, old, slot_id=account, social_account_id=account)
    statement = text("update account_schedule set time_zone = 'US/Pacific-New' where social_account_id = :account")
    async with drift.database.transaction() as tx:
        await tx.connection.execute(statement, {"account": account})


async def test_a_schedule_in_a_zone_that_is_no_more_waits_for_a_person(drift: Drift) -> None:
    """Queue could not read its announcement, although it has a post elsewhere that moves."""
    await in_dropped_zone(drift, "gone")
    await drift.schedule("page")
    before = await drift.stored_schedule("gone")
    drift.news.schedules.clear()

    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    applied = await drift.apply()

    assert (applied.moved[Kind.ACCOUNT_SCHEDULE], applied.done) == (1, True)
    assert [news.account_schedule.social_account_id for news in drift.news.schedules] == ["page"]
    assert await drift.stored_schedule("gone") == before


async def test_posts_of_a_deleted_schedule_move_also_when_its_zone_is_no_more(drift: Drift) -> None:
    await in_dropped_zone(drift, "gone")
    async with drift.database.transaction() as tx:
        await account_schedules.save(tx.connection, deleted(await drift.stored_schedule("gone"), now=LONG_AGO))
    drift.news.schedules.clear()

    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "gone")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1

    (news,) = drift.news.schedules
    assert (news.account_schedule.social_account_id, news.deleted) == ("gone", True)
    assert await drift.listed() == []


async def test_rows_without_a_release_count_as_announced_with_this_one(drift: Drift) -> None:
    before = await drift.schedule(release="")
    assert await drift.listed() == []
    watch = WatchTzdata(database=drift.database)
    assert not await watch()
    assert await drift.stored_schedule() == replace(before, tzdata_version=NEW)
    assert (await drift.apply()).moved.total() == 0


async def test_the_watch_marks_any_number_of_rows_in_steps(drift: Drift) -> None:
    async with drift.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots,
                    max_posts_per_day, enabled, version, create_time, update_time)
                select 'acme', 'page-' || n, '', 'America/Vancouver', '{}', 0, true, 1, :now, :now
                from generate_series(1, 1500) n
            """),
            {"now": NOW},
        )
    watch = WatchTzdata(database=drift.database)
    assert await watch()
    assert not await watch()
    async with drift.database.read() as connection:
        left = await connection.execute(text("select count(*) from account_schedule where tzdata_version = ''"))
        assert left.scalar_one() == 0


async def test_the_watch_records_laws_of_rows_that_were_there_before(drift: Drift) -> None:
    await drift.schedule(release=NEW)
    await drift.schedule("berlin", BERLIN, release="")
    watch = WatchTzdata(database=drift.database)
    await watch()
    await watch()
    async with drift.database.read() as connection:
        recorded = await connection.execute(
            text("select time_zone, data from zone_data where tzdata_version = :new"), {"new": NEW}
        )
        assert {row.time_zone: row.data for row in recorded} == {zone: zone_data(zone) for zone in (VANCOUVER, BERLIN)}


async def test_the_watch_warns_once_when_something_follows_an_older_release(
    drift: Drift, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    watch = WatchTzdata(database=drift.database)
    await watch()
    assert not caplog.records
    await drift.schedule()
    await drift.schedule("older", release="2020a")
    await drift.schedule("ahead", release="2031a")
    await drift.rule()
    await watch()
    await watch()
    (warning,) = caplog.records
    assert "2 account_schedule, 1 schedule_rule, 0 timer" in warning.getMessage()
    assert "ListZoneChanges" in warning.getMessage()


async def test_a_law_is_recorded_once_and_never_overwritten(drift: Drift) -> None:
    await drift.record(BERLIN, b"first", NEW)
    async with drift.database.transaction() as tx:
        await record_zones(tx.connection, [find_zone(BERLIN), find_zone(VANCOUVER), find_zone(BERLIN)])
        await record_zones(tx.connection, [])
    async with drift.database.read() as connection:
        rows = await connection.execute(text("select * from zone_data where tzdata_version = :new"), {"new": NEW})
        assert {(row.time_zone, row.data) for row in rows} == {(BERLIN, b"first"), (VANCOUVER, zone_data(VANCOUVER))}
