"""Drafts that are added to queues together get what they would get one after another."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.application.add_to_queue import QueueOrder
from queue_service.domain.account import AnnouncedSchedule
from queue_service.domain.draft import Draft, Target
from servicekit.faults import Fault
from tests.usecase.queue_service.twins import comparable, stored

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DRAFTS = ("d0", "d1", "d2", "d3", "d4", "d5")
# Without a schedule; with a cap; without one, and disabled.
ACCOUNTS = ("none", "capped", "free", "off")
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
Order = tuple[str, tuple[str, ...]]

orders = st.tuples(
    st.sampled_from([*DRAFTS, "missing"]), st.lists(st.sampled_from(["capped", "free"]), max_size=2).map(tuple)
)
usable = st.sets(st.sampled_from(["capped", "free"]), min_size=1)
targets = st.fixed_dictionaries(
    {draft: st.one_of(usable, usable, st.sets(st.sampled_from(ACCOUNTS), min_size=1)) for draft in DRAFTS}
)


class Twins:
    """Two organizations with the same drafts and schedules."""

    count = 0

    def __init__(self, queue: "Queue", targets: dict[str, set[str]]) -> None:
        Twins.count += 1
        self.queue = queue
        self.together, self.apart = f"together-{Twins.count}", f"apart-{Twins.count}"
        for account, cap, enabled in (("capped", 2, True), ("free", 0, True), ("off", 0, False)):
            queue.schedule.slots[account] = HOURLY if enabled else []
            queue.schedule.schedules[account] = AnnouncedSchedule(
                organization_id="any",
                social_account_id=account,
                version=1,
                time_zone="UTC",
                max_posts_per_day=cap,
                enabled=enabled,
            )
        for organization in (self.together, self.apart):
            for draft, accounts in targets.items():
                queue.drafts.drafts[f"{organization}.{draft}"] = Draft(
                    organization_id=organization,
                    id=f"{organization}.{draft}",
                    revision=1,
                    targets=tuple(
                        Target(social_account_id=each, channel="facebook", destination="") for each in sorted(accounts)
                    ),
                )

    async def one_by_one(self, organization: str, wanted: Sequence[Order]) -> list[Any]:
        return [await self._one(organization, *order) for order in wanted]

    async def in_one_transaction(self, wanted: Sequence[Order]) -> list[Any]:
        organization, add = self.together, self.queue.add_to_queue
        calls = [
            self.queue.call_add(f"{organization}.{draft}", *accounts, organization_id=organization)
            for draft, accounts in wanted
        ]
        readings = [
            await add.read(
                QueueOrder(
                    organization_id=organization, draft_id=f"{organization}.{draft}", social_account_ids=accounts
                )
            )
            for draft, accounts in wanted
        ]
        outcomes = await self.queue.ledger.once_each(list(zip(calls, readings, strict=True)), add.book)
        return [each if isinstance(each, Fault) else list(each.queue_slots) for each in outcomes]

    async def _one(self, organization: str, draft: str, accounts: tuple[str, ...]) -> list[QueueSlot] | Fault:
        try:
            return await self.queue.add(f"{organization}.{draft}", *accounts, organization_id=organization)
        except Fault as fault:
            return fault


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    targets=targets,
    earlier=st.lists(orders, max_size=3),
    wanted=st.lists(orders, min_size=1, max_size=10),
)
async def test_calls_of_one_gathering_end_as_if_they_came_one_by_one(
    queue: "Queue", targets: dict[str, set[str]], earlier: list[Order], wanted: list[Order]
) -> None:
    twins = Twins(queue, targets)
    for organization in (twins.together, twins.apart):
        await twins.one_by_one(organization, earlier)
    together = await twins.in_one_transaction(wanted)
    apart = await twins.one_by_one(twins.apart, wanted)
    assert comparable(together) == comparable(apart)
    assert await stored(queue, twins.together) == await stored(queue, twins.apart)


async def test_calls_in_flight_get_different_times_of_one_account(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY, cap=5)
    for number in range(20):
        await queue.save_draft(f"d{number}", "page")
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(queue.add(f"d{number}")) for number in range(20)]
    times = sorted(queue.time_of(slot) for call in calls for slot in call.result())
    assert len(set(times)) == 20
    days = [time.date() for time in times]
    assert all(days.count(day) <= 5 for day in days)
    assert times == await queue.times()
    [transactions] = await queue.rows("select count(distinct xmin::text::bigint) as n from slot")
    assert transactions.n <= 6


async def test_a_schedule_that_changes_makes_calls_of_a_gathering_read_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    old = [await queue.add_to_queue.read(QueueOrder(organization_id="acme", draft_id="d1"))]
    await queue.put_schedule("page", WeeklySlot(day=2, hour=7, minute=0), version=2, announce=False)
    new = [await queue.add_to_queue.read(QueueOrder(organization_id="acme", draft_id="d2"))]
    asked = list(zip([queue.call_add("d1"), queue.call_add("d2")], old + new, strict=True))
    outdated, booked = await queue.ledger.once_each(asked, queue.add_to_queue.book)
    assert isinstance(outdated, Fault)
    assert not isinstance(booked, Fault)
    [slot] = booked.queue_slots
    [later] = await queue.add("d1")
    assert (queue.time_of(later) - queue.time_of(slot)).days == 7
