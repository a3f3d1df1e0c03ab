"""BatchCreateDrafts: many drafts by one call, each with a result of its own."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from sqlalchemy import text

from drafts_service.domain.content import Content
from drafts_service.domain.draft import GivenDraft
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import BatchCreateDraftsResponse
from servicekit.faults import InvalidField
from servicekit.pg.database import Database

CreateBatch = Callable[..., Coroutine[Any, Any, BatchCreateDraftsResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
Get = Callable[..., Awaitable[Draft]]

FACEBOOK = Target(social_account_id="a", channel="facebook")


def given(draft_id: str, said: str = "", *targets: Target) -> GivenDraft:
    return GivenDraft(id=draft_id, content=Content(text=said or f"text of {draft_id}"), targets=targets or (FACEBOOK,))


async def test_each_draft_gets_its_result(create_drafts: CreateBatch, get_draft: Get, announced: Announced) -> None:
    asked = [given(f"d{n}") for n in range(200)]
    results = (await create_drafts(given=asked, request_id="r")).results
    assert [result.draft.id for result in results] == [draft.id for draft in asked]
    read = await get_draft("d7")
    assert (read.content.text, read.revision, read.state) == ("text of d7", 1, DRAFT_STATE_DRAFT)
    for field in ("content", "targets", "target_states"):
        read.ClearField(field)
    assert results[7].draft == read
    assert [saved.draft_id for saved in await announced()] == [draft.id for draft in asked]


async def test_errors_are_those_of_single_calls_and_leave_the_others_alone(
    create_drafts: CreateBatch, a_draft: Callable[..., Awaitable[Draft]], announced: Announced
) -> None:
    await a_draft("used")
    asked = [
        given("one"),
        given("used"),
        given("", " "),
        given("lost", "text", Target(social_account_id="a", channel="myspace")),
        given("twice", "first"),
        given("twice", "second"),
        given("", "generated"),
    ]
    results = (await create_drafts(given=asked)).results
    errors = [(r.error.code, r.error.reason, r.error.field) if r.HasField("error") else None for r in results]
    assert errors == [
        None,
        ("ALREADY_EXISTS", "DRAFT_EXISTS", ""),
        ("INVALID_ARGUMENT", "INVALID_FIELD", "draft.content.text"),
        ("INVALID_ARGUMENT", "UNKNOWN_CHANNEL", "draft.targets[0].channel"),
        None,
        ("ALREADY_EXISTS", "DRAFT_EXISTS", ""),
        None,
    ]
    assert "the known ones are bluesky" in results[3].error.message
    stored = {saved.draft_id: saved.content_digest for saved in await announced()}
    assert set(stored) == {"used", "one", "twice", results[6].draft.id}
    assert stored["twice"] == results[4].draft.content_digest


async def test_a_batch_of_refused_drafts_stores_nothing_but_its_answer(
    create_drafts: CreateBatch, database: Database
) -> None:
    first = await create_drafts(given=[given("a", " "), given("b", " ")], request_id="r")
    assert [result.error.reason for result in first.results] == ["INVALID_FIELD"] * 2
    async with database.read() as connection:
        assert (await connection.execute(text("select count(*) from draft"))).scalar_one() == 0
        assert (await connection.execute(text("select count(*) from outbox"))).scalar_one() == 0
    assert await create_drafts(given=[given("a", " "), given("b", " ")], request_id="r") == first


async def test_a_repeated_batch_gets_its_first_answer(create_drafts: CreateBatch, announced: Announced) -> None:
    asked = [given(""), given("d"), given("d")]
    first = await create_drafts(given=asked, request_id="r")
    assert await create_drafts(given=asked, request_id="r") == first
    assert len(await announced()) == 2
    with pytest.raises(InvalidField) as refusal:
        await create_drafts(given=asked, request_id="r", digest=b"other")
    assert refusal.value.reason == "REQUEST_ID_REUSED"


async def test_a_draft_of_a_batch_is_folded_from_events_that_came_before_it(
    create_drafts: CreateBatch, reflect: Callable[..., Awaitable[None]], a_job: Callable[..., PostJobEvent]
) -> None:
    await reflect(a_job(JobState.PUBLISHED, draft_id="old"))
    results = (await create_drafts(given=[given("new"), given("old")])).results
    assert [result.draft.state for result in results] == [DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED]
