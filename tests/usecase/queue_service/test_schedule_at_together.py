"""Orders that arrive together get what they would get one after another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.domain.draft import Draft, Target
from servicekit.faults import Fault
from testkit.clocks import START
from tests.usecase.queue_service.twins import comparable, stored

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

NOON = START + timedelta(hours=3)
DRAFTS, ACCOUNTS = ("d0", "d1", "d2", "d3"), ("a0", "a1", "a2")
END = """
    with ended as (
        update slot set state = 'PUBLISHED', publish_time = schedule_time, next_emit_at = null
        where organization_id = any(:organizations) and split_part(draft_id, '.', 2) = :draft
        returning organization_id, id
    )
    update slot_target t set job_state = 'PUBLISHED', post_job_id = 'job', job_version = 3
    from ended where t.organization_id = ended.organization_id and t.slot_id = ended.id
"""


@dataclass(frozen=True)
class Order:
    draft: str
    seconds: int
    accounts: tuple[str, ...] = ()


orders = st.builds(
    Order,
    draft=st.sampled_from([*DRAFTS, "missing"]),
    seconds=st.sampled_from([0, 0, 30, 59, 60, 90, 120, -20_000, 90_000_000]),
    accounts=st.lists(st.sampled_from([*ACCOUNTS, "stranger"]), max_size=2).map(tuple),
)
targets = st.fixed_dictionaries(
    {draft: st.sets(st.sampled_from(ACCOUNTS), min_size=1).map(lambda each: tuple(sorted(each))) for draft in DRAFTS}
)


class Twins:
    """Two organizations with the same drafts and slots: one gets orders together, the other one by one."""

    count = 0

    def __init__(self, queue: "Queue") -> None:
        Twins.count += 1
        self.queue = queue
        self.organizations = [f"together-{Twins.count}", f"apart-{Twins.count}"]

    async def prepare(self, targets: dict[str, tuple[str, ...]], earlier: Sequence[Order], ended: set[str]) -> None:
        for organization in self.organizations:
            for draft, accounts in targets.items():
                self.queue.drafts.drafts[f"{organization}.{draft}"] = Draft(
                    organization_id=organization,
                    id=f"{organization}.{draft}",
                    revision=1,
                    targets=tuple(
                        Target(social_account_id=each, channel="facebook", destination="") for each in accounts
                    ),
                )
            await self.one_by_one(organization, earlier)
        for draft in sorted(ended):
            async with self.queue.database.transaction() as tx:
                await tx.connection.execute(text(END), {"organizations": self.organizations, "draft": draft})

    async def one_by_one(self, organization: str, wanted: Sequence[Order]) -> list[Any]:
        return [await self._one(organization, order) for order in wanted]

    async def together(self, organization: str, wanted: Sequence[Order]) -> list[Any]:
        """Has all orders carried out in one transaction, in their order."""
        calls = [self.queue.call_at(f"{organization}.{o.draft}", NOON, organization_id=organization) for o in wanted]
        asked = [await self.queue.schedule_at.read(self._order(organization, order)) for order in wanted]
        outcomes = await self.queue.ledger.once_each(
            list(zip(calls, asked, strict=True)), self.queue.schedule_at.schedule
        )
        return [each if isinstance(each, Fault) else list(each.queue_slots) for each in outcomes]

    def _order(self, organization: str, order: Order) -> Any:
        return self.queue.exact_order(
            f"{organization}.{order.draft}",
            NOON + timedelta(seconds=order.seconds),
            *order.accounts,
            organization_id=organization,
        )

    async def _one(self, organization: str, order: Order) -> Any:
        exact = self._order(organization, order)
        try:
            return await self.queue.at(
                exact.draft_id, exact.schedule_time, *order.accounts, organization_id=organization
            )
        except Fault as fault:
            return fault


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    targets=targets,
    earlier=st.lists(orders, max_size=4),
    ended=st.sets(st.sampled_from(DRAFTS), max_size=2),
    wanted=st.lists(orders, min_size=1, max_size=12),
)
async def test_orders_of_one_gathering_end_as_if_they_came_one_by_one(
    queue: "Queue",
    targets: dict[str, tuple[str, ...]],
    earlier: list[Order],
    ended: set[str],
    wanted: list[Order],
) -> None:
    twins = Twins(queue)
    await twins.prepare(targets, earlier, ended)
    first, second = twins.organizations
    together, apart = await twins.together(first, wanted), await twins.one_by_one(second, wanted)
    assert comparable(together) == comparable(apart)
    assert await stored(queue, first) == await stored(queue, second)


async def test_calls_in_flight_share_statements(queue: "Queue") -> None:
    for number in range(40):
        await queue.save_draft(f"d{number}", f"page-{number}")
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(queue.at(f"d{number}", NOON)) for number in range(40)]
    slots = [slot for call in calls for slot in call.result()]
    assert len({slot.id for slot in slots}) == 40
    [transactions] = await queue.rows("select count(distinct xmin::text::bigint) as n from slot")
    assert transactions.n <= 10
    assert len(await queue.announced()) == 40


async def test_one_request_sent_many_times_at_once_is_carried_out_once(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(queue.at("d1", NOON, request_id="same")) for _ in range(8)]
    assert len({call.result()[0].id for call in calls}) == 1
    assert len(await queue.times()) == 1


async def test_a_refused_order_leaves_the_others_of_its_gathering_alone(queue: "Queue") -> None:
    for draft in ("d1", "d2", "d3"):
        await queue.save_draft(draft, "page")

    async def attempt(draft: str, seconds: int) -> list[QueueSlot] | str:
        try:
            return await queue.at(draft, NOON + timedelta(seconds=seconds), request_id=f"r-{draft}")
        except Fault as fault:
            return fault.reason

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(*each)) for each in (("d1", 0), ("d2", 10), ("missing", 20), ("d3", 70))]
    answers = [task.result() for task in tasks]
    reasons = [each if isinstance(each, str) else "booked" for each in answers]
    assert reasons[2:] == ["DRAFT_NOT_FOUND", "booked"]
    assert sorted(reasons[:2]) == ["SLOT_TAKEN", "booked"]
    # A refused request is not stored: it may succeed later, even with another time.
    loser = "d1" if reasons[0] == "SLOT_TAKEN" else "d2"
    [slot] = await queue.at(loser, NOON + timedelta(hours=1), request_id=f"r-{loser}")
    assert slot.draft_id == loser
