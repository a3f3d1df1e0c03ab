"""Schedule over the wire: a real server, a real stub, a real database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, WeeklySlot
from postflow.schedule.v1.schedule_rule_pb2 import ScheduleRule
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleRequest,
    GetScheduleRuleRequest,
    ListRuleTargetsRequest,
    UpdateScheduleRuleRequest,
)
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub, add_ScheduleServiceServicer_to_server
from schedule_service.main import Parts, schedule_servicer
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, open_channel


@pytest.fixture
def announced() -> list[bus_pb2.Event]:
    """Events put into the outbox, in order."""
    return []


@pytest.fixture
def parts(database: Database, announced: list[bus_pb2.Event]) -> Parts:
    ids = Uuid7Source()
    outbox = Outbox(
        ids, lambda rows: announced.extend(e for row in rows for e in bus_pb2.Envelope.FromString(row.payload).events)
    )
    return Parts(
        database=database,
        clock=DatabaseClock(),
        ids=ids,
        ledger=RequestLedger(database, DatabaseClock()),
        outbox=outbox,
    )


@pytest.fixture
async def stub(parts: Parts) -> AsyncIterator[Any]:
    servicers = [(add_ScheduleServiceServicer_to_server, schedule_servicer(parts))]
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=parts.ids)
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        yield ScheduleServiceStub(channel)
    await server.stop(0)


class RuleCalls:
    """Calls about schedule rules, with defaults for what most tests leave alone."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def create_request(
        self, rule_id: str = "r1", organization: str = "acme", request_id: str = "", **fields: Any
    ) -> Any:
        """Returns a request with what a rule needs, without the fields that are None."""
        monday = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)
        given = {
            "brand_id": "brand",
            "time_zone": "America/New_York",
            "channels": ["facebook"],
            "weekly_slots": [monday],
        }
        rule = ScheduleRule(**{name: value for name, value in (given | fields).items() if value is not None})
        return CreateScheduleRuleRequest(
            organization_id=organization, schedule_rule=rule, schedule_rule_id=rule_id, request_id=request_id
        )

    async def create(self, rule_id: str = "r1", **fields: Any) -> ScheduleRule:
        request = self.create_request(rule_id, **fields)
        created: ScheduleRule = (await self._stub.CreateScheduleRule(request)).schedule_rule
        return created

    def update_request(self, *paths: str, organization: str = "acme", request_id: str = "", **fields: Any) -> Any:
        return UpdateScheduleRuleRequest(
            organization_id=organization,
            schedule_rule=ScheduleRule(**({"id": "r1"} | fields)),
            update_mask=FieldMask(paths=paths or fields.keys() - {"id", "etag"}),
            request_id=request_id,
        )

    def targets_request(self, **fields: Any) -> ListRuleTargetsRequest:
        given: dict[str, Any] = {
            "organization_id": "acme",
            "brand_id": "brand",
            "after": datetime(2026, 3, 1, 0, 0, tzinfo=UTC),
        }
        return ListRuleTargetsRequest(**(given | fields))

    async def get(self, rule_id: str = "r1", organization: str = "acme") -> ScheduleRule:
        request = GetScheduleRuleRequest(organization_id=organization, schedule_rule_id=rule_id)
        stored: ScheduleRule = (await self._stub.GetScheduleRule(request)).schedule_rule
        return stored


@pytest.fixture
def rules(stub: Any) -> RuleCalls:
    return RuleCalls(stub)
