"""Drafts that are approved at the same time share transactions; each call gets what it would get alone."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from opentelemetry import trace
from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftResponse
from servicekit.faults import Conflict, NotFound
from servicekit.pg.database import Database
from servicekit.run import telemetry
from testkit.spans import recorded_spans

Approve = Callable[..., Coroutine[Any, Any, ApproveDraftResponse]]
ADraft = Callable[..., Awaitable[Draft]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]


async def test_refused_calls_do_not_hold_up_their_neighbours(
    a_draft: ADraft, approve_draft: Approve, announced: Announced, get_draft: Callable[..., Awaitable[Draft]]
) -> None:
    for name in ("1", "2", "a", "b", "c"):
        await a_draft(name, text=f"text of {name}")

    async def outcome(draft_id: str, **given: str) -> Any:
        try:
            return (await approve_draft(draft_id=draft_id, approver=f"of {draft_id}", **given)).draft
        except Exception as error:  # noqa: BLE001 - compared by the test
            return error

    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(outcome("1")),
            group.create_task(outcome("2")),
            group.create_task(outcome("a")),
            group.create_task(outcome("missing")),
            group.create_task(outcome("b", etag="stale")),
            group.create_task(outcome("c", content_digest="0" * 64)),
            group.create_task(outcome("a", etag="stale after the first")),
            group.create_task(outcome("a")),
        ]
    first, second, a, missing, b, c, late, again = (call.result() for call in calls)
    assert [(draft.id, draft.approver, draft.content.text) for draft in (first, second, a)] == [
        ("1", "of 1", "text of 1"),
        ("2", "of 2", "text of 2"),
        ("a", "of a", "text of a"),
    ]
    assert isinstance(missing, NotFound)
    assert [(type(refusal), refusal.reason) for refusal in (b, c, late)] == [
        (Conflict, "ETAG_MISMATCH"),
        (Conflict, "DIGEST_MISMATCH"),
        (Conflict, "ETAG_MISMATCH"),
    ]
    assert again == a == await get_draft("a")
    approvals = [saved.draft_id for saved in await announced() if saved.approved]
    assert sorted(approvals) == ["1", "2", "a"]
    assert not (await get_draft("b")).approved


async def test_an_etag_of_before_is_stale_within_a_transaction(a_draft: ADraft, approve_draft: Approve) -> None:
    """Both calls read the same draft; the first one changes it."""
    etag = (await a_draft("a")).etag
    for name in ("1", "2"):
        await a_draft(name)

    async def outcome(draft_id: str, etag: str) -> bool:
        try:
            return (await approve_draft(draft_id=draft_id, etag=etag)).draft.approved
        except Conflict:
            return False

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(outcome(*each)) for each in [("1", ""), ("2", ""), ("a", etag), ("a", etag)]]
    assert [call.result() for call in calls] == [True, True, True, False]


async def test_each_announcement_carries_the_trace_of_its_own_call(
    a_draft: ADraft, approve_draft: Approve, database: Database
) -> None:
    names, traces = ("1", "2", "a", "b", "c"), dict[str, str]()
    for name in names:
        await a_draft(name)

    async def traced(draft_id: str) -> None:
        with trace.get_tracer("test").start_as_current_span(draft_id):
            traces[draft_id] = telemetry.traceparent()
            await approve_draft(draft_id=draft_id)

    with recorded_spans():
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(traced(name))
    async with database.read() as connection:
        payloads = (await connection.execute(text("select payload from outbox order by position"))).scalars()
        events = [event for payload in payloads for event in Envelope.FromString(payload).events]
    assert {event.aggregate_id: event.traceparent for event in events[len(names) :]} == traces
    assert all(traces.values())
