"""Drafts that are created at the same time share transactions; each call gets what it would get alone."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from opentelemetry import trace
from sqlalchemy import text

from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import Content
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import CreateDraftResponse
from servicekit.faults import AlreadyExists
from servicekit.pg.database import Database
from servicekit.run import telemetry
from testkit.spans import recorded_spans

Create = Callable[..., Coroutine[Any, Any, CreateDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
Keep = Callable[..., Awaitable[None]]

TARGETS = (Target(social_account_id="a", channel="facebook"),)


async def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Makes the calls at the same time; returns the answer or the error of each."""

    async def outcome(call: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await call
        except Exception as error:  # noqa: BLE001 - compared by the test
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(call)) for call in calls]
    return [task.result() for task in tasks]


def new(create: Create, draft_id: str, *, said: str = "", **call: Any) -> Coroutine[Any, Any, CreateDraftResponse]:
    return create(draft_id=draft_id, content=Content(text=said or f"text of {draft_id}"), targets=TARGETS, **call)


async def test_each_call_gets_its_own_draft(
    create_draft: Create, get_draft: Callable[..., Awaitable[Draft]], announced: Announced
) -> None:
    answers = await together(*(new(create_draft, f"d{n}", request_id=f"r{n}") for n in range(20)))
    assert [answer.draft.id for answer in answers] == [f"d{n}" for n in range(20)]
    assert [answer.draft.content.text for answer in answers] == [f"text of d{n}" for n in range(20)]
    assert [await get_draft(f"d{n}") for n in range(20)] == [answer.draft for answer in answers]
    assert sorted(saved.draft_id for saved in await announced()) == sorted(f"d{n}" for n in range(20))


async def test_an_id_in_use_refuses_only_its_own_call(
    create_draft: Create, database: Database, announced: Announced
) -> None:
    await new(create_draft, "used")
    answers = await together(*(new(create_draft, id, request_id=f"r-{id}") for id in ("1", "2", "a", "used", "b")))  # noqa: A001
    assert isinstance(answers.pop(3), AlreadyExists)
    assert [answer.draft.id for answer in answers] == ["1", "2", "a", "b"]
    assert len(await announced()) == 5
    async with database.read() as connection:
        rows = (await connection.execute(text("select request_id from request_ledger"))).scalars()
        assert sorted(rows) == ["r-1", "r-2", "r-a", "r-b"]


async def test_of_several_calls_with_one_id_one_wins(
    create_draft: Create, get_draft: Callable[..., Awaitable[Draft]], announced: Announced, keep: Keep
) -> None:
    await keep(Account(organization_id="org", id="a", version=1, state=AccountState.CONNECTED))
    texts = [f"text {n}" for n in range(6)]
    _, _, *answers = await together(
        new(create_draft, "1"), new(create_draft, "2"), *(new(create_draft, "d", said=said) for said in texts)
    )
    (won,) = (answer.draft for answer in answers if not isinstance(answer, AlreadyExists))
    assert won.content.text == texts[answers.index(CreateDraftResponse(draft=won))]
    assert await get_draft("d") == won
    assert [saved.content_digest for saved in await announced() if saved.draft_id == "d"] == [won.content_digest]


async def test_drafts_without_an_id_get_different_ones(create_draft: Create) -> None:
    answers = await together(*(new(create_draft, "", said="same") for _ in range(10)))
    assert len({answer.draft.id for answer in answers}) == 10


async def test_only_the_draft_that_has_events_is_folded_from_them(
    create_draft: Create, reflect: Callable[..., Awaitable[None]], a_job: Callable[..., PostJobEvent]
) -> None:
    await reflect(a_job(JobState.PUBLISHED, draft_id="old"))
    answers = await together(*(new(create_draft, id) for id in ("1", "2", "a", "old", "b")))  # noqa: A001
    states = {answer.draft.id: answer.draft.state for answer in answers}
    assert states == dict.fromkeys(("1", "2", "a", "b"), DRAFT_STATE_DRAFT) | {"old": DRAFT_STATE_PUBLISHED}


async def test_each_announcement_carries_the_trace_of_its_own_call(create_draft: Create, database: Database) -> None:
    traces: dict[str, str] = {}

    async def traced(draft_id: str) -> None:
        with trace.get_tracer("test").start_as_current_span(draft_id):
            traces[draft_id] = telemetry.traceparent()
            await new(create_draft, draft_id)

    with recorded_spans():
        await together(*map(traced, ("1", "2", "a", "b", "c")))
    async with database.read() as connection:
        payloads = (await connection.execute(text("select payload from outbox"))).scalars()
        events = [event for payload in payloads for event in Envelope.FromString(payload).events]
    assert {event.aggregate_id: event.traceparent for event in events} == traces
    assert all(traces.values())


async def test_each_call_gets_the_reasons_of_its_own_accounts(create_draft: Create, keep: Keep) -> None:
    connected, not_connected = AccountState.CONNECTED, AccountState.DISCONNECTED
    states = {
        ("org", "1"): connected, ("org", "2"): connected, ("org", "a"): connected, ("org", "b"): not_connected,
        ("other", "a"): not_connected, ("other", "b"): connected,
    }  # fmt: skip
    for (organization, account), state in states.items():
        await keep(Account(organization_id=organization, id=account, version=1, state=state))
    answers = await together(
        *(
            create_draft(
                organization_id=organization,
                draft_id="",
                content=Content(text="text"),
                targets=(Target(social_account_id=account, channel="facebook"),),
            )
            for organization, account in states
        )
    )
    reasons = {connected: "", not_connected: "ACCOUNT_NOT_CONNECTED"}
    shown = [target.state_reason for answer in answers for target in answer.draft.target_states]
    assert shown == [reasons[state] for state in states.values()]
