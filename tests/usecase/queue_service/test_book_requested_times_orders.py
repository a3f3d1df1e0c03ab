"""Requested times under random orders, duplicates and batches of announcements."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_service.domain.draft import Draft, SavedDraft, Target
from servicekit.versions import newest
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

NUMBERS = count()
ACCOUNTS = ("group", "page")
# A minute apart, half a minute apart, and one that has passed.
TIMES = [START + timedelta(hours=1, seconds=30 * number) for number in (0, 1, 2, 4)] + [
    START - timedelta(hours=1),
    None,
]


@st.composite
def histories(draw: st.DrawFn) -> list[SavedDraft]:
    """The announcements of three drafts, some of them twice, in any order."""
    saved = [
        SavedDraft(
            draft=Draft(
                organization_id="",
                id=f"d{draft}",
                revision=version,
                targets=tuple(
                    Target(social_account_id=account, channel="facebook", destination="")
                    for account in sorted(draw(st.sets(st.sampled_from(ACCOUNTS), min_size=1)))
                ),
            ),
            version=version,
            is_approved=draw(st.sampled_from([True, True, True, False])),
            requested_time=draw(st.sampled_from(TIMES)),
        )
        for draft in range(3)
        for version in range(1, 5)
    ]
    twice = draw(st.lists(st.sampled_from(saved), max_size=4))
    return draw(st.permutations([*saved, *twice]))


async def slots_of(queue: "Queue", organization: str) -> dict[tuple[str, str], tuple[str, datetime, int]]:
    rows = await queue.rows(
        "select id, draft_id, social_account_id, schedule_time, revision from slot where organization_id = :tenant",
        tenant=organization,
    )
    assert len({(row.draft_id, row.social_account_id) for row in rows}) == len(rows)
    return {(row.draft_id, row.social_account_id): (row.id, row.schedule_time, row.revision) for row in rows}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(), size=st.sampled_from([1, 3, 6]))
async def test_each_request_is_answered_and_slots_stay_apart(
    queue: "Queue", history: Sequence[SavedDraft], size: int
) -> None:
    organization = f"org-{next(NUMBERS)}"
    saved = [replace(each, draft=replace(each.draft, organization_id=organization)) for each in history]
    for first in range(0, len(saved), size):
        await queue.apply(queue.follow_drafts, *saved[first : first + size])
    slots = await slots_of(queue, organization)
    for account in ACCOUNTS:
        times = sorted(time for (_, owner), (_, time, _) in slots.items() if owner == account)
        assert all(later - earlier >= timedelta(minutes=1) for earlier, later in pairwise(times))
        due = await queue.rows(
            "select next_due_time from account_queue where (organization_id, social_account_id) = (:org, :account)",
            org=organization,
            account=account,
        )
        assert [row.next_due_time for row in due if times] == times[:1]
    refused = {
        (each.draft_id, each.social_account_id, each.schedule_time.ToDatetime(UTC))
        for each in await queue.refusals()
        if each.organization_id == organization
    }
    for last in newest(saved, key=lambda each: each.draft.key, version=lambda each: each.version):
        if last.is_approved and last.requested_time:
            for account in last.draft.account_ids:
                slot = slots.get((last.draft.id, account))
                is_booked = slot is not None and slot[1] == last.requested_time
                assert is_booked or (last.draft.id, account, last.requested_time) in refused
    scheduled, moves = await queue.announced(), await queue.moves()
    announced = {(each.slot_id, each.revision): each.schedule_time.ToDatetime(UTC) for each in scheduled}
    announced |= {(each.slot_id, each.revision): each.schedule_time.ToDatetime(UTC) for each in moves}
    assert {(slot_id, revision): time for slot_id, time, revision in slots.values()}.items() <= announced.items()
