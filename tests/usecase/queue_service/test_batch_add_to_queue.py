"""Many drafts are added to queues in one call, each as a call for it alone would add it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.rpc.code_pb2 import Code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_service_pb2 import QueueItemResult
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.domain.account import AnnouncedSchedule
from queue_service.domain.batch import CHUNK
from queue_service.domain.draft import Draft, Target
from servicekit.faults import Fault, InvalidField, Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.twins import stored

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
HOUR = timedelta(hours=1)
# A capped account, one with times for a category, one without a schedule, and one whose schedule is disabled.
ACCOUNTS = ("capped", "kept", "none", "off")
NEWS = WeeklySlot(day=2, hour=5, minute=30), WeeklySlot(day=3, hour=5, minute=30)
DRAFTS = tuple(f"d{number}" for number in range(12))
Wanted = tuple[str, str, datetime | None]

items = st.tuples(
    st.sampled_from([*DRAFTS, "missing"]),
    st.sampled_from(["capped", "capped", "kept", "kept", *ACCOUNTS]),
    st.one_of(
        st.none(),
        st.none(),
        st.integers(-2, 300).map(lambda minutes: START + timedelta(minutes=minutes)),
    ),
)


class Organizations:
    """Two organizations with the same drafts and schedules: one gets a batch, the other single calls."""

    count = 0

    def __init__(self, queue: "Queue", news: set[str]) -> None:
        Organizations.count += 1
        self.queue = queue
        self.together, self.apart = f"batch-{Organizations.count}", f"singles-{Organizations.count}"
        queue.schedule.kept = dict.fromkeys(NEWS, "news")
        for account, cap, enabled in (("capped", 2, True), ("kept", 0, True), ("off", 0, False)):
            queue.schedule.slots[account] = [*HOURLY, *NEWS] if enabled else []
            queue.schedule.schedules[account] = AnnouncedSchedule(
                organization_id="any",
                social_account_id=account,
                version=1,
                time_zone="Europe/Berlin",
                max_posts_per_day=cap,
                enabled=enabled,
            )
        queue.schedule.zone = "Europe/Berlin"
        for organization in (self.together, self.apart):
            for draft in DRAFTS:
                queue.drafts.drafts[f"{organization}.{draft}"] = Draft(
                    organization_id=organization,
                    id=f"{organization}.{draft}",
                    revision=1,
                    targets=tuple(
                        Target(social_account_id=each, channel="facebook", destination="") for each in ACCOUNTS
                    ),
                    category_id="news" if draft in news else "",
                )

    async def skip(self, account: str) -> None:
        insert = """
            insert into account_queue (organization_id, social_account_id, schedule_version, time_zone,
                max_posts_per_day, enabled, search_from, full_from, full_until, skip_next)
            values (:organization, :account, 0, '', 0, false, 'epoch', 'epoch', 'epoch', true)
        """
        async with self.queue.database.transaction() as tx:
            for organization in (self.together, self.apart):
                await tx.connection.execute(text(insert), {"organization": organization, "account": account})

    async def batch(self, wanted: Sequence[Wanted]) -> list[Any]:
        items = [(f"{self.together}.{draft}", account, at) for draft, account, at in wanted]
        return [_result(each) for each in await self.queue.batch(*items, organization_id=self.together)]

    async def singles(self, wanted: Sequence[Wanted]) -> list[Any]:
        return [await self._one(f"{self.apart}.{draft}", account, at) for draft, account, at in wanted]

    async def _one(self, draft: str, account: str, at: datetime | None) -> Any:
        try:
            if at:
                [slot] = await self.queue.at(draft, at, account, organization_id=self.apart)
            else:
                [slot] = await self.queue.add(draft, account, organization_id=self.apart)
        except Fault as fault:
            return _refusal(str(fault.code), fault.reason, fault.metadata)
        return _slot(slot)


def _result(result: QueueItemResult) -> Any:
    if result.HasField("queue_slot"):
        return _slot(result.queue_slot)
    return _refusal(Code.Name(result.error.code), result.error.reason, result.error.metadata)


def _slot(slot: QueueSlot) -> Any:
    return slot.draft_id.split(".")[1], slot.social_account_id, slot.schedule_time.ToMicroseconds(), slot.origin


def _refusal(code: str, reason: str, metadata: Any) -> Any:
    known = {name: value for name, value in metadata.items() if name not in ("draft_id", "queue_slot_id")}
    return code, reason, sorted(known.items())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    news=st.sets(st.sampled_from(DRAFTS), max_size=6),
    skipping=st.sets(st.sampled_from(["capped", "kept"])),
    earlier=st.lists(items, max_size=4),
    wanted=st.lists(items, min_size=1, max_size=20),
)
async def test_a_batch_ends_as_single_calls_in_its_order(
    queue: "Queue", news: set[str], skipping: set[str], earlier: list[Wanted], wanted: list[Wanted]
) -> None:
    both = Organizations(queue, news)
    for account in sorted(skipping):
        await both.skip(account)
    await both.batch(earlier) if earlier else None
    await both.singles(earlier)
    assert await both.batch(wanted) == await both.singles(wanted)
    assert await stored(queue, both.together) == await stored(queue, both.apart)


async def saved(queue: "Queue", number: int, *accounts: str) -> list[tuple[str, str]]:
    """Saves drafts; returns an item for each on each account."""
    for each in range(number):
        await queue.save_draft(f"d{each}", *accounts)
    return [(f"d{each}", account) for each in range(number) for account in accounts]


async def test_a_large_batch_fills_the_queue_without_gaps(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    results = await queue.batch(*await saved(queue, 2 * CHUNK + 10, "page"))
    times = [queue.time_of(each.queue_slot) for each in results]
    assert times == [START + HOUR * number for number in range(1, 2 * CHUNK + 11)]
    [row] = await queue.rows("select arrangement from account_queue")
    assert row.arrangement == 2 * CHUNK + 10


async def test_a_batch_under_a_tight_cap_reads_as_many_times_as_it_needs(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY, cap=1)
    results = await queue.batch(*await saved(queue, 100, "page"))
    days = [queue.time_of(each.queue_slot).date() for each in results]
    assert len(set(days)) == 100
    assert (max(days) - min(days)).days == 99


async def test_a_batch_takes_few_statements_and_one_search(queue: "Queue", statements: Any) -> None:
    for account in ("a", "b", "c"):
        await queue.put_schedule(account, *HOURLY)
    items = await saved(queue, 60, "a", "b", "c")
    statements.clear()
    await queue.batch(*items[:3], request_id="few")
    few = len(statements.texts)
    statements.clear()
    await queue.batch(*items[3:], request_id="many")
    assert len(statements.texts) <= few


async def test_a_repeat_returns_the_first_results(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    items = [*await saved(queue, 3, "page"), ("missing", "page")]
    first = await queue.batch(*items, request_id="again")
    await queue.save_draft("missing", "page")
    assert await queue.batch(*items, request_id="again") == first
    assert len(await queue.times()) == 3
    with pytest.raises(InvalidField) as reused:
        await queue.batch(*items[:2], request_id="again")
    assert reused.value.reason == "REQUEST_ID_REUSED"


async def test_an_interrupted_batch_is_completed_by_a_repeat(queue: "Queue") -> None:
    """Breaks off between the first chunk, of account a, and the second, of which some items are on account b."""
    for account in ("a", "b"):
        await queue.put_schedule(account, *HOURLY)
    drafts = await saved(queue, CHUNK, "a", "b")
    items = [item for account in ("a", "b") for item in drafts if item[1] == account]
    slots = queue.schedule.slots.pop("b")
    queue.schedule.fault = Unavailable("AWAY", "no")
    with pytest.raises(Unavailable):
        await queue.batch(*items, request_id="broken")
    assert await queue.times() == []
    queue.schedule.fault = None
    queue.schedule.faults["b"] = Unavailable("AWAY", "no")
    queue.schedule.slots["b"] = slots
    with pytest.raises(Unavailable):
        await queue.batch(*items, request_id="broken")
    before = await queue.rows("select id, social_account_id from slot order by id")
    assert [row.social_account_id for row in before] == ["a"] * CHUNK
    del queue.schedule.faults["b"]
    results = await queue.batch(*items, request_id="broken")
    assert [each.queue_slot.social_account_id for each in results] == ["a"] * CHUNK + ["b"] * CHUNK
    assert {row.id for row in before} == {each.queue_slot.id for each in results[:CHUNK]}
    assert await queue.batch(*items, request_id="broken") == results


async def test_an_error_of_one_item_leaves_the_others_alone(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    await saved(queue, 3, "page")
    results = await queue.batch(
        ("d0", "page"), ("d0", "page"), ("d1", "other"), ("gone", "page"), ("d2", "page", START - HOUR), ("d1", "page")
    )
    reasons = [each.error.reason for each in results]
    assert reasons == ["", "ALREADY_QUEUED", "ACCOUNT_NOT_A_TARGET", "DRAFT_NOT_FOUND", "INVALID_FIELD", ""]
    assert [Code.Name(each.error.code) for each in results[2:5]] == [
        "FAILED_PRECONDITION",
        "NOT_FOUND",
        "INVALID_ARGUMENT",
    ]
    assert results[2].error.metadata == {"social_account_id": "other", "draft_id": "d1"}
    assert results[4].error.metadata == {"field": "schedule_time"}
    assert await queue.times() == [START + HOUR, START + 2 * HOUR]


async def test_batches_and_single_calls_at_once_get_different_times(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY, cap=5)
    items = await saved(queue, 60, "page")
    async with asyncio.TaskGroup() as group:
        for first in (0, 20):
            group.create_task(queue.batch(*items[first : first + 20]))
        for draft, account in items[40:]:
            group.create_task(queue.add(draft, account))
    times = await queue.times()
    assert len(set(times)) == 60
    days = [time.date() for time in times]
    assert max(days.count(day) for day in days) <= 5
    assert (max(days) - min(days)).days == 11


async def test_an_unknown_account_is_checked_once(queue: "Queue") -> None:
    queue.accounts.missing.add("page")
    results = await queue.batch(*await saved(queue, 20, "page"))
    assert {each.error.reason for each in results} == {"ACCOUNT_NOT_FOUND"}
    assert queue.accounts.asked == ["page"]


async def test_known_drafts_are_not_asked_for(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    items = await saved(queue, 5, "page")
    await queue.batch(*items)
    assert queue.drafts.asked == 0


async def test_a_draft_of_another_organization_is_unknown(queue: "Queue") -> None:
    [item] = await saved(queue, 1, "page")
    [result] = await queue.batch(item, organization_id="other")
    assert (Code.Name(result.error.code), result.error.reason) == ("NOT_FOUND", "DRAFT_NOT_FOUND")


async def test_chunks_without_a_common_account_are_carried_out_at_the_same_time(queue: "Queue") -> None:
    for account in ("a", "b", "c"):
        await queue.put_schedule(account, *HOURLY)
    items = await saved(queue, CHUNK // 2 + 1, "a", "b", "c")
    queue.schedule.meetings = dict.fromkeys("bc", asyncio.Barrier(2))
    results = await queue.batch(*items)
    for account in ("a", "b", "c"):
        times = [queue.time_of(each.queue_slot) for each in results if each.queue_slot.social_account_id == account]
        assert times == [START + HOUR * number for number in range(1, CHUNK // 2 + 2)]


async def test_nothing_is_stored_under_an_id_that_was_used_for_a_smaller_batch(queue: "Queue") -> None:
    for account in ("a", "b", "c"):
        await queue.put_schedule(account, *HOURLY)
    items = await saved(queue, CHUNK // 2 + 1, "a", "b", "c")
    await queue.batch(items[0], request_id="used")
    with pytest.raises(InvalidField) as reused:
        await queue.batch(*items[1:], request_id="used")
    assert reused.value.reason == "REQUEST_ID_REUSED"
    assert len(await queue.times()) == 1
