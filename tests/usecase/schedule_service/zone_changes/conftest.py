"""Rows announced with older time zone data, and the use cases of zone changes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from civil.cron import Dst, firings, parse_cron
from civil.weekly import WeeklySlot
from civil.zones import find_zone, tzdata_version, zone_data, zone_from_data
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, ScheduleRuleChanged
from schedule_service.adapters.postgres.account_schedules import find_schedule, save_schedule
from schedule_service.adapters.postgres.schedule_rules import find_rule, insert_rule
from schedule_service.adapters.postgres.timers import find_timer, insert_timer
from schedule_service.adapters.postgres.upcoming_slots import save_slots
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.zone_changes.apply_zone_changes import AppliedZoneChanges, ApplyZoneChanges
from schedule_service.application.zone_changes.list_zone_changes import ListZoneChanges, Position
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Timetable, created
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.domain.timers.timer import Timer
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.domain.timers.timer_request import created as created_timer
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import ZoneChange
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox, OutboxRow
from testkit.calls import call
from testkit.clocks import FrozenClock
from testkit.database_clocks import FrozenDatabaseClock
from testkit.zones.compiled_zones import compiled_zone

OLD = "2024a"
NEW = tzdata_version()
NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=500)
VANCOUVER = "America/Vancouver"
# Until 2026 clocks in Vancouver went back in November; since then they stay.
VANCOUVER_BEFORE = compiled_zone("PST8PDT,M3.2.0,M11.1.0", offset=timedelta(hours=-8))
BERLIN = "Europe/Berlin"
# The same times in other bytes.
BERLIN_BEFORE = zone_data(BERLIN).replace(b"LMT", b"XYZ")
MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)
# Monday 09:00 of the first winter without winter time.
MOVED = MovedTime(
    datetime(2026, 11, 2, 9, 0), datetime(2026, 11, 2, 17, 0, tzinfo=UTC), datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
)


class Announced:
    """Stands in for the relay: keeps what has been announced."""

    def __init__(self) -> None:
        self.schedules: list[AccountScheduleChanged] = []
        self.rules: list[ScheduleRuleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                if event.type == AccountScheduleChanged.DESCRIPTOR.full_name:
                    self.schedules.append(AccountScheduleChanged.FromString(event.payload))
                else:
                    assert event.type == ScheduleRuleChanged.DESCRIPTOR.full_name
                    self.rules.append(ScheduleRuleChanged.FromString(event.payload))


class Drift:
    """Schedules, rules and timers announced with an older release, and the use cases of zone changes."""

    vancouver_before = VANCOUVER_BEFORE

    def __init__(self, database: Database) -> None:
        self.database, self.announced = database, Announced()
        self.clock, self.process_clock = FrozenDatabaseClock(NOW), FrozenClock()
        self.outbox = Outbox(Uuid7Source(), self.announced.offer)
        self._list = ListZoneChanges(database=database, clock=self.clock)
        self._apply = ApplyZoneChanges(
            database=database, clock=self.clock, outbox=self.outbox, process_clock=self.process_clock
        )
        self._put = PutAccountSchedule(ledger=RequestLedger(database, self.clock), outbox=self.outbox)

    async def record(self, zone: str, data: bytes, release: str = OLD) -> None:
        statement = text("insert into zone_data values (:release, :zone, :data) on conflict do nothing")
        async with self.database.transaction() as tx:
            await tx.connection.execute(statement, {"release": release, "zone": zone, "data": data})

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
            await save_schedule(tx.connection, made)
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
            assert await insert_rule(tx.connection, made)
        return made

    async def timer(
        self,
        timer_id: str = "timer",
        *,
        organization: str = "acme",
        release: str = OLD,
        data: bytes = VANCOUVER_BEFORE,
        **changes: object,
    ) -> Timer:
        request = TimerRequest(topic="t", cron="0 9 * * 1", time_zone=VANCOUVER, dst_policy=Dst.ONCE)
        made = created_timer(organization, timer_id, request, now=NOW)
        zone = zone_from_data(VANCOUVER, data)
        after = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
        due = next(firings(parse_cron("0 9 * * 1"), zone, after=after, dst=Dst.ONCE)).instant
        made = replace(made, due_time=due, sleep_until=due, tzdata_version=release)
        made = replace(made, **changes)  # type: ignore[arg-type]
        async with self.database.transaction() as tx:
            assert await insert_timer(tx.connection, made)
        return made

    async def listed(self, organization: str = "", *, size: int = 200) -> list[ZoneChange]:
        """Lists all changes, page by page."""
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
        timetable = Timetable(**(given | terms))  # type: ignore[arg-type]
        await self._put(call("Put"), social_account_id=account, timetable=timetable, etag="")

    async def receive_slot(
        self, nominal: datetime | None, at: datetime, zone: str = VANCOUVER, **changes: object
    ) -> None:
        """Stores a slot of Queue."""
        slot = UpcomingSlot(
            organization_id="acme",
            slot_id="s",
            social_account_id="page",
            revision=1,
            schedule_time=at,
            time_zone=zone,
            nominal=nominal,
        )
        async with self.database.transaction() as tx:
            await save_slots(tx, [replace(slot, **changes)])  # type: ignore[arg-type]

    async def set_release(self, release: str, account: str = "page") -> None:
        """Changes the schedule to one that a process of that release announced last."""
        statement = text("update account_schedule set tzdata_version = :release where social_account_id = :account")
        async with self.database.transaction() as tx:
            await tx.connection.execute(statement, {"release": release, "account": account})

    async def schedule_in_dropped_zone(self, account: str) -> None:
        """Stores a schedule whose zone tzdata has dropped, with a post in its former zone, Vancouver."""
        nominal, old, _ = MOVED
        assert old is not None
        await self.schedule(account)
        await self.put(account, zone=find_zone(BERLIN))
        await self.set_release(OLD, account)
        await self.receive_slot(nominal, old, slot_id=account, social_account_id=account)
        statement = text("update account_schedule set time_zone = 'US/Pacific-New' where social_account_id = :account")
        async with self.database.transaction() as tx:
            await tx.connection.execute(statement, {"account": account})

    async def stored_schedule(self, account: str = "page", organization: str = "acme") -> AccountSchedule:
        async with self.database.read_session() as session:
            found = await find_schedule(session, organization, account)
        assert found is not None
        return found

    async def stored_rule(self, rule_id: str = "rule") -> ScheduleRule:
        async with self.database.read() as connection:
            found = await find_rule(connection, "acme", rule_id)
        assert found is not None
        return found

    async def stored_timer(self, timer_id: str = "timer") -> Timer:
        async with self.database.read() as connection:
            found = await find_timer(connection, "acme", timer_id)
        assert found is not None
        return found


@pytest.fixture
async def drift(database: Database) -> Drift:
    drift = Drift(database)
    await drift.record(VANCOUVER, VANCOUVER_BEFORE)
    await drift.record(BERLIN, BERLIN_BEFORE)
    return drift
