"""Reading a draft, and when that asks Publisher about an account."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.draft import Change
from drafts_service.domain.post_job import COUNTED_AS_ENDED, IN_FLIGHT, OPEN, JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_BLOCKED, DRAFT_STATE_SCHEDULED, Draft
from postflow.drafts.v1.drafts_service_pb2 import CreateDraftResponse, UpdateDraftResponse
from servicekit.faults import NotFound
from servicekit.pg.database import Database

Get = Callable[..., Awaitable[Draft]]
Create = Callable[..., Coroutine[Any, Any, CreateDraftResponse]]
Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
ADraft = Callable[..., Awaitable[Draft]]
Reflect = Callable[..., Awaitable[None]]
Job = Callable[..., PostJobEvent]
Keep = Callable[..., Awaitable[None]]

TARGETS = (
    Target(social_account_id="a", channel="instagram"),
    Target(social_account_id="b", channel="telegram", destination="@news"),
)
CONTENT = Content(text="text", hashtags=("one",), channel_texts=(ChannelText(channel="Telegram", text="few"),))


def disconnected(name: str) -> Account:
    return Account(organization_id="org", id=name, version=1, state=AccountState.DISCONNECTED, provider="sandbox")


def reasons(draft: Draft) -> dict[str, str]:
    return {each.target.social_account_id: each.state_reason for each in draft.target_states}


async def test_a_created_draft_is_read_back(create_draft: Create, get_draft: Get) -> None:
    created = (await create_draft(draft_id="mine", content=CONTENT, targets=TARGETS)).draft
    assert await get_draft("mine") == created


@pytest.mark.parametrize(("draft_id", "organization_id"), [("absent", "org"), ("draft", "other")])
async def test_a_missing_draft_or_one_of_another_organization_is_not_found(
    a_draft: ADraft, get_draft: Get, draft_id: str, organization_id: str
) -> None:
    await a_draft()
    with pytest.raises(NotFound) as absence:
        await get_draft(draft_id, organization_id=organization_id)
    assert (absence.value.reason, absence.value.metadata) == ("DRAFT_NOT_FOUND", {"draft_id": draft_id})


async def test_calls_that_arrive_together_share_statements(
    database: Database, a_draft: ADraft, get_draft: Get, reflect: Reflect, a_job: Job
) -> None:
    names = [f"draft-{number}" for number in range(12)]
    for name in names:
        await a_draft(name, accounts=("page",))
    await reflect(*(a_job(JobState.READY, draft_id=name, account="page", state_reason=name) for name in names))
    heard: list[str] = []
    database.listeners.append(lambda sql, _values: heard.append(sql))
    async with asyncio.TaskGroup() as group:
        asked = {name: group.create_task(found_or_none(get_draft(name))) for name in (*names, "absent")}
    assert {name: reasons(draft) for name, task in asked.items() if (draft := task.result())} == {
        name: {"page": name} for name in names
    }
    assert len(heard) <= 4  # two at once for the first two calls, then one for all others


async def found_or_none(call: Awaitable[Draft]) -> Draft | None:
    try:
        return await call
    except NotFound:
        return None


async def test_an_account_is_asked_for_again_after_an_outage_of_publisher(
    a_draft: ADraft, get_draft: Get, directory: Any
) -> None:
    assert reasons(await a_draft(accounts=("absent",))) == {"absent": ""}
    directory.accounts = {}
    draft = await get_draft()
    assert reasons(draft) == {"absent": "ACCOUNT_NOT_FOUND"}


async def test_a_draft_is_read_while_publisher_is_down(a_draft: ADraft, get_draft: Get, directory: Any) -> None:
    created = await a_draft(accounts=("unknown",))
    directory.asked.clear()
    assert await get_draft() == created
    assert directory.asked == ["unknown"]


async def test_asking_for_an_unknown_account_keeps_what_is_known_of_others(
    a_draft: ADraft, get_draft: Get, keep: Keep, directory: Any
) -> None:
    await keep(disconnected("lost"))
    await a_draft(accounts=("lost", "absent"))
    directory.accounts = {}
    directory.asked.clear()
    assert reasons(await get_draft()) == {"lost": "ACCOUNT_NOT_CONNECTED", "absent": "ACCOUNT_NOT_FOUND"}
    assert directory.asked == ["absent"]


@pytest.mark.parametrize(
    ("state", "state_reason", "asked"),
    [
        *((state, "", ["unknown"]) for state in sorted(OPEN)),
        *((state, "NOT_APPROVED", []) for state in sorted(OPEN)),
        *((state, "", []) for state in sorted(IN_FLIGHT | COUNTED_AS_ENDED | {JobState.CANCELED})),
    ],
)
async def test_publisher_is_asked_only_for_targets_that_wait_without_a_reason(
    a_draft: ADraft,
    get_draft: Get,
    reflect: Reflect,
    a_job: Job,
    directory: Any,
    state: JobState,
    state_reason: str,
    asked: list[str],
) -> None:
    await a_draft(accounts=("unknown",))
    await reflect(a_job(state, account="unknown", state_reason=state_reason))
    directory.asked.clear()
    await get_draft()
    assert directory.asked == asked


async def test_the_account_of_a_removed_target_that_waits_is_asked_for_too(
    a_draft: ADraft, get_draft: Get, update_draft: Update, reflect: Reflect, a_job: Job, directory: Any
) -> None:
    await a_draft(accounts=("page", "removed"))
    await reflect(a_job(JobState.PENDING, account="removed"))
    await update_draft(change=Change(targets=(Target(social_account_id="page", channel="facebook"),)))
    directory.accounts = {}
    assert reasons(await get_draft()) == {"page": "ACCOUNT_NOT_FOUND", "removed": "ACCOUNT_NOT_FOUND"}


async def test_the_reason_of_a_job_goes_before_that_of_its_account(
    a_draft: ADraft, get_draft: Get, keep: Keep, reflect: Reflect, a_job: Job, directory: Any
) -> None:
    await keep(disconnected("a"), disconnected("b"))
    await a_draft(accounts=("a", "b"))
    await reflect(
        a_job(JobState.BLOCKED, account="a", state_reason="NOT_APPROVED"), a_job(JobState.PENDING, account="b")
    )
    draft = await get_draft()
    assert reasons(draft) == {"a": "NOT_APPROVED", "b": "ACCOUNT_NOT_CONNECTED"}
    await reflect(a_job(JobState.PUBLISHED, account="a", version=2), a_job(JobState.FAILED, account="b", version=2))
    draft = await get_draft()
    assert reasons(draft) == {"a": "", "b": ""}
    assert directory.asked == []


async def test_a_draft_is_blocked_while_its_scheduled_accounts_are_gone(
    a_draft: ADraft, reflect: Reflect, a_job: Job, keep: Keep, get_draft: Get
) -> None:
    """Queue hands over nothing for such an account, so its job stays SCHEDULED, even past its time."""
    passed = datetime(2026, 3, 2, tzinfo=UTC)
    await a_draft(accounts=("a", "b"))
    await reflect(a_job(JobState.SCHEDULED, schedule_time=passed), a_job(JobState.PENDING, account="b"))
    connected = replace(disconnected("a"), version=2, state=AccountState.CONNECTED)
    for account, state, reason in (
        (disconnected("a"), DRAFT_STATE_BLOCKED, "ACCOUNT_NOT_CONNECTED"),
        (connected, DRAFT_STATE_SCHEDULED, ""),
        (replace(disconnected("a"), version=3), DRAFT_STATE_BLOCKED, "ACCOUNT_NOT_CONNECTED"),
    ):
        await keep(account)
        draft = await get_draft()
        assert (draft.state, reasons(draft)["a"]) == (state, reason)
    await reflect(a_job(JobState.SCHEDULED, account="b", version=2, schedule_time=passed))
    assert (await get_draft()).state == DRAFT_STATE_SCHEDULED
