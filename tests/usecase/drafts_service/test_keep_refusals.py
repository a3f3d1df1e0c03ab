"""Refusals of Queue, in any order and repeated, as drafts show them."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from drafts_service.application.keep_refusals import KeepRefusals
from drafts_service.domain.draft import Change, RequestedTime
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.slot_refusal import RefusedSlot, SlotRefusal
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_service_pb2 import UpdateDraftResponse
from servicekit.clock import SystemClock
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

ADraft = Callable[..., Awaitable[Draft]]
Get = Callable[..., Awaitable[Draft]]
Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
Reflect = Callable[..., Awaitable[None]]
Job = Callable[..., PostJobEvent]
Refuse = Callable[..., Awaitable[None]]

NOON = SystemClock().now().replace(microsecond=5) + timedelta(days=1)


@pytest.fixture
def refuse(database: Database) -> Refuse:
    """`await refuse(refused, ...)` applies one batch of events."""

    async def apply(*refusals: RefusedSlot) -> None:
        async def work(tx: Transaction) -> None:
            await KeepRefusals()(tx, refusals, await DatabaseClock().now(tx.connection))

        await database.run(work)

    return apply


def refused(
    account: str = "a", version: int = 1, *, time: datetime = NOON, draft_id: str = "draft", reason: str = "SLOT_TAKEN"
) -> RefusedSlot:
    return RefusedSlot(
        organization_id="org",
        draft_id=draft_id,
        refusal=SlotRefusal(
            social_account_id=account,
            draft_version=version,
            schedule_time=time,
            reason=reason,
            message=f"no {version}",
            create_time=datetime(2026, 3, 2, tzinfo=UTC),
        ),
    )


def shown(draft: Draft) -> list[tuple[str, str]]:
    return [(each.social_account_id, each.message) for each in draft.slot_refusals]


@pytest.fixture
async def draft(a_draft: ADraft, update_draft: Update) -> Draft:
    """A draft that asks for noon on the accounts `a` and `b`."""
    await a_draft(accounts=("a", "b"))
    return (await update_draft(change=Change(requested_time=RequestedTime(NOON)))).draft


async def test_a_refusal_is_shown_as_it_was_announced(draft: Draft, refuse: Refuse, get_draft: Get) -> None:
    await refuse(refused(version=2))
    after = await get_draft()
    [refusal] = after.slot_refusals
    assert (refusal.social_account_id, refusal.reason, refusal.message) == ("a", "SLOT_TAKEN", "no 2")
    assert refusal.schedule_time.ToDatetime(UTC) == NOON
    assert refusal.create_time.ToDatetime(UTC) == datetime(2026, 3, 2, tzinfo=UTC)
    assert (after.etag, after.revision) == (draft.etag, draft.revision)


async def test_the_newest_refusal_wins_in_any_order(draft: Draft, refuse: Refuse, get_draft: Get) -> None:
    events = [refused(version=2), refused(version=3), refused("b", 2)]
    for heard in permutations([*events, events[0]]):
        await refuse(*heard[:2])
        await refuse(*heard[2:])
        assert shown(await get_draft()) == [("a", "no 3"), ("b", "no 2")]


async def test_other_drafts_times_and_accounts_are_ignored(draft: Draft, refuse: Refuse, get_draft: Get) -> None:
    elsewhere = replace(refused(), organization_id="other")
    await refuse(elsewhere, refused(draft_id="absent"), refused(time=NOON - timedelta(hours=1)), refused("c"))
    assert shown(await get_draft()) == []


async def test_another_time_or_none_ends_the_refusals(
    draft: Draft, update_draft: Update, refuse: Refuse, get_draft: Get
) -> None:
    await refuse(refused(), refused("b"))
    fewer = (await update_draft(change=Change(targets=(Target(social_account_id="a", channel="facebook"),)))).draft
    assert shown(fewer) == [("a", "no 1")]
    for time in (NOON + timedelta(hours=1), None):
        assert shown((await update_draft(change=Change(requested_time=RequestedTime(time)))).draft) == []
        await refuse(refused())  # late
        assert shown(await get_draft()) == []


async def test_a_later_slot_ends_the_refusal_of_its_account(
    draft: Draft, refuse: Refuse, reflect: Reflect, a_job: Job, get_draft: Get
) -> None:
    """Covers both orders of the two events."""
    later = NOON + timedelta(hours=2)
    await refuse(refused())
    await reflect(a_job(JobState.SCHEDULED, schedule_time=later), a_job(JobState.PENDING, account="b"))
    await reflect(a_job(JobState.SCHEDULED, account="b", version=2, schedule_time=later))
    await refuse(refused("b"))
    assert shown(await get_draft()) == []
