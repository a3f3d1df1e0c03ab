"""The use cases of account schedules and schedule rules, with a clock that the test sets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, ScheduleRuleChanged
from postflow.schedule.v1.schedule_rule_pb2 import ScheduleRule
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleRequest,
    CreateScheduleRuleResponse,
    DeleteAccountScheduleRequest,
    DeleteAccountScheduleResponse,
    DeleteScheduleRuleRequest,
    DeleteScheduleRuleResponse,
    PutAccountScheduleRequest,
    PutAccountScheduleResponse,
    UpdateScheduleRuleRequest,
    UpdateScheduleRuleResponse,
)
from schedule_service.application.calendars.create_schedule_rule import CreateScheduleRule
from schedule_service.application.calendars.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.calendars.delete_schedule_rule import DeleteScheduleRule
from schedule_service.application.calendars.follow_slots import DeletePastSlots, follow_slots
from schedule_service.application.calendars.get_account_schedule import GetAccountSchedule
from schedule_service.application.calendars.get_schedule_rule import GetScheduleRule
from schedule_service.application.calendars.list_rule_targets import ListRuleTargets
from schedule_service.application.calendars.list_schedule_rules import ListScheduleRules
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.calendars.update_schedule_rule import UpdateScheduleRule
from schedule_service.domain.calendars.account_schedule import Timetable
from schedule_service.domain.calendars.rule_targets import Span, TargetPage
from schedule_service.domain.calendars.schedule_rule import Terms
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.wire import account_schedules
from schedule_service.wire import schedule_rules as wire_rules
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger, mutation
from servicekit.pg.outbox import Outbox, OutboxRow
from testkit.clocks import START
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.schedule_service.calendars.terms import BY_RRULE, WEEKLY

TIMETABLE = Timetable(
    name="Default queue",
    zone=find_zone("America/New_York"),
    weekly_slots=(
        WeeklySlot(day=0, hour=0, minute=0),
        WeeklySlot(day=1, hour=9, minute=0),
        WeeklySlot(day=6, hour=23, minute=59),
    ),
    max_posts_per_day=2,
    enabled=True,
    send_window=SendWindow(days=frozenset({0, 1, 6}), start=time(8, 30), end=None),
    min_spacing=timedelta(minutes=6),
)


class Announced:
    """Stands in for the relay."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.events: list[AccountScheduleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                changed = AccountScheduleChanged.FromString(event.payload)
                assert event.type == AccountScheduleChanged.DESCRIPTOR.full_name
                assert event.organization_id == changed.organization_id
                assert event.aggregate_id == changed.account_schedule.social_account_id
                self.subjects.append(row.subject)
                self.events.append(changed)

    @property
    def schedules(self) -> list[AccountSchedule]:
        return [changed.account_schedule for changed in self.events]


class Schedules:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FrozenDatabaseClock(tick=timedelta.resolution)
        self.announced = Announced()
        self.timetable = TIMETABLE
        ledger, outbox = RequestLedger(database, self.clock), Outbox(Uuid7Source(), self.announced.offer)
        self._put = PutAccountSchedule(ledger=ledger, outbox=outbox)
        self._get = GetAccountSchedule(database)
        self._delete = DeleteAccountSchedule(ledger=ledger, outbox=outbox)
        self.delete_past = DeletePastSlots(database=database, clock=self.clock)

    async def put(
        self,
        timetable: Timetable = TIMETABLE,
        *,
        organization_id: str = "acme",
        social_account_id: str = "page",
        etag: str = "",
        request_id: str = "",
        digest: bytes = b"",
    ) -> AccountSchedule:
        put = replace(
            mutation(
                PutAccountScheduleRequest(organization_id=organization_id, request_id=request_id),
                PutAccountScheduleResponse,
                account_schedules.put_account_schedule_response,
            ),
            request_digest=digest,
        )
        return (
            await self._put(put, social_account_id=social_account_id, timetable=timetable, etag=etag)
        ).account_schedule

    async def get(self, *, organization_id: str = "acme", social_account_id: str = "page") -> AccountSchedule:
        return account_schedules.shown(
            await self._get(organization_id=organization_id, social_account_id=social_account_id)
        )

    async def delete(
        self,
        *,
        organization_id: str = "acme",
        etag: str = "",
        force: bool = False,
        request_id: str = "",
        digest: bytes = b"",
    ) -> None:
        delete = replace(
            mutation(
                DeleteAccountScheduleRequest(organization_id=organization_id, request_id=request_id),
                DeleteAccountScheduleResponse,
                account_schedules.delete_account_schedule_response,
            ),
            request_digest=digest,
        )
        await self._delete(delete, social_account_id="page", etag=etag, force=force)

    async def receive(self, *slots: UpcomingSlot) -> None:
        """Applies one batch of Queue's events."""
        await self.database.run(lambda tx: follow_slots(tx, slots, self.clock.moment))


class AnnouncedRules:
    """Stands in for the relay."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.events: list[ScheduleRuleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                changed = ScheduleRuleChanged.FromString(event.payload)
                assert event.type == ScheduleRuleChanged.DESCRIPTOR.full_name
                assert event.organization_id == changed.organization_id
                assert event.aggregate_id == changed.schedule_rule.id
                self.subjects.append(row.subject)
                self.events.append(changed)


class Rules:
    """The use cases of schedule rules, with defaults for what most tests leave alone."""

    weekly = WEEKLY
    by_rrule = BY_RRULE

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FrozenDatabaseClock()
        self.announced = AnnouncedRules()
        ids, ledger, clock = Uuid7Source(), RequestLedger(database, self.clock), self.clock
        outbox = Outbox(ids, self.announced.offer)
        self._create = CreateScheduleRule(ids=ids, ledger=ledger, outbox=outbox)
        self._get = GetScheduleRule(database)
        self._update = UpdateScheduleRule(ledger=ledger, outbox=outbox)
        self._delete = DeleteScheduleRule(ledger=ledger, outbox=outbox)
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
        create = replace(
            mutation(
                CreateScheduleRuleRequest(organization_id=organization_id, request_id=request_id),
                CreateScheduleRuleResponse,
                wire_rules.create_schedule_rule_response,
            ),
            request_digest=digest,
        )
        return (await self._create(create, rule_id=rule_id, brand_id=brand_id, terms=terms)).schedule_rule

    async def get(self, rule_id: str = "r1", *, organization_id: str = "acme") -> ScheduleRule:
        return wire_rules.shown(await self._get(organization_id=organization_id, rule_id=rule_id))

    async def update(
        self,
        rule_id: str = "r1",
        *,
        organization_id: str = "acme",
        etag: str = "",
        request_id: str = "",
        **changes: Any,
    ) -> ScheduleRule:
        digest = repr(changes).encode()
        update = replace(
            mutation(
                UpdateScheduleRuleRequest(organization_id=organization_id, request_id=request_id),
                UpdateScheduleRuleResponse,
                wire_rules.update_schedule_rule_response,
            ),
            request_digest=digest,
        )
        return (await self._update(update, rule_id=rule_id, changes=changes, etag=etag)).schedule_rule

    async def delete(
        self, rule_id: str = "r1", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> None:
        delete = mutation(
            DeleteScheduleRuleRequest(organization_id=organization_id, request_id=request_id),
            DeleteScheduleRuleResponse,
            wire_rules.delete_schedule_rule_response,
        )
        await self._delete(delete, rule_id=rule_id, etag=etag)

    async def ids(self, brand_id: str = "", after: str = "", size: int = 100, organization_id: str = "acme") -> str:
        rules = await self._list(organization_id=organization_id, brand_id=brand_id, after=after, size=size)
        return " ".join(rule.id for rule in rules)

    async def targets(self, brand_id: str = "brand", rest: Span | None = None, **asked: Any) -> TargetPage:
        given = {"organization_id": "acme", "after": None, "horizon": None, "size": 100} | asked
        return await self._targets(brand_id=brand_id, rest=rest, **given)


@pytest.fixture
def schedules(database: Database) -> Schedules:
    return Schedules(database)


@pytest.fixture
def rules(database: Database) -> Rules:
    return Rules(database)


@pytest.fixture
def a_slot() -> Callable[..., UpcomingSlot]:
    """A slot of "page" an hour from now."""
    given = UpcomingSlot(
        organization_id="acme",
        slot_id="s1",
        social_account_id="page",
        revision=1,
        schedule_time=START + timedelta(hours=1),
    )

    def make(**changes: object) -> UpcomingSlot:
        return replace(given, **changes)  # type: ignore[arg-type]

    return make
