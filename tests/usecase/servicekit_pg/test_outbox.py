from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry.sdk.trace import TracerProvider
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.outbox import Announcement, Outbox, OutboxRow, stored_row

NOW = datetime(2026, 3, 2, 9, 0, 0, 123457, tzinfo=UTC)


def _announcement(number: int, subject: str = "events.test.org.thing") -> Announcement:
    return Announcement(
        subject=subject, organization_id="org", aggregate_id=f"thing-{number}", message=Duration(seconds=number)
    )


class Offered:
    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    def __call__(self, rows: Sequence[OutboxRow]) -> None:
        self.rows += rows


@pytest.fixture
def offered() -> Offered:
    return Offered()


@pytest.fixture
def outbox(offered: Offered) -> Outbox:
    return Outbox(Uuid7Source(), offered)


async def _stored(database: Database) -> list[OutboxRow]:
    async with database.read() as connection:
        found = await connection.execute(
            text("select position, event_id, subject, payload from outbox order by position")
        )
        return [stored_row(*row) for row in found]


async def test_rows_appear_with_the_commit_and_are_offered_after_it(
    database: Database, outbox: Outbox, offered: Offered
) -> None:
    async with database.transaction() as tx:
        await outbox.append(tx, [_announcement(number) for number in range(100)], now=NOW)
        assert not offered.rows
        assert not await _stored(database)

    assert offered.rows == await _stored(database), "the same rows under the same positions"
    assert [event.aggregate_id for row in offered.rows for event in _events(row)] == [
        f"thing-{number}" for number in range(100)
    ]


async def test_a_transaction_packs_its_events_by_subject(outbox: Outbox) -> None:
    subjects = [f"events.test.{number % 2}" for number in range(130)]
    rows = outbox.packed([_announcement(number, subject) for number, subject in enumerate(subjects)], now=NOW)
    assert [(row.subject[-1], row.events) for row in rows] == [("0", 50), ("1", 50), ("0", 15), ("1", 15)]
    for subject in ("events.test.0", "events.test.1"):
        found = [int(event.aggregate_id[6:]) for row in rows if row.subject == subject for event in _events(row)]
        assert found == sorted(found)
        assert len(found) == 65
    for row in rows:
        assert row.event_id == _events(row)[0].id


async def test_large_events_have_rows_of_their_own(outbox: Outbox) -> None:
    sizes = [200_000, 100_000, 400_000, 10, 10]
    rows = outbox.packed([_large(size) for size in sizes], now=NOW)
    assert [row.events for row in rows] == [1, 1, 1, 2]


async def test_a_rolled_back_transaction_announces_nothing(
    database: Database, outbox: Outbox, offered: Offered
) -> None:
    async def announce_and_fail() -> None:
        async with database.transaction() as tx:
            await outbox.append(tx, [_announcement(1)], now=NOW)
            raise LookupError

    with pytest.raises(LookupError):
        await announce_and_fail()
    assert not offered.rows
    assert not await _stored(database)


async def test_an_event_has_type_organization_aggregate_and_time(
    database: Database, outbox: Outbox, offered: Offered
) -> None:
    async with database.transaction() as tx:
        await outbox.append(tx, [_announcement(7)], now=NOW)

    event = _event(offered.rows[0])
    assert event.id == offered.rows[0].event_id
    assert event.type == "google.protobuf.Duration"
    assert event.organization_id == "org"
    assert event.occur_time.ToDatetime(UTC) == NOW
    assert Duration.FromString(event.payload).ToTimedelta() == timedelta(seconds=7)
    assert not event.traceparent


async def test_only_a_sampled_trace_is_carried(database: Database, outbox: Outbox, offered: Offered) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("origin") as span:
        async with database.transaction() as tx:
            await outbox.append(tx, [_announcement(1)], now=NOW)
    assert f"{span.get_span_context().trace_id:032x}" in _event(offered.rows[0]).traceparent


@pytest.mark.parametrize("subject", ["", "events..org", "events.>", "events.a b", "events.\r\nPUB", "events.ü"])
async def test_an_invalid_subject_is_refused_before_the_commit(outbox: Outbox, subject: str) -> None:
    with pytest.raises(ValueError, match="cannot announce"):
        outbox.packed([_announcement(1, subject)], now=NOW)


async def test_a_too_large_announcement_is_refused_before_the_commit(outbox: Outbox) -> None:
    with pytest.raises(ValueError, match="bytes") as caught:
        outbox.packed([_large(600_000)], now=NOW)
    assert "xxx" not in str(caught.value)


def _large(size: int) -> Announcement:
    message = bus_pb2.Event(payload=b"x" * size)
    return Announcement(subject="events.test", organization_id="org", aggregate_id="thing", message=message)


def _event(row: OutboxRow) -> bus_pb2.Event:
    (event,) = _events(row)
    return event


def _events(row: OutboxRow) -> list[bus_pb2.Event]:
    return list(bus_pb2.Envelope.FromString(row.payload).events)
