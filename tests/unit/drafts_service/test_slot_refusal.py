"""Refusals of slots: which is the newest, and which are overtaken by a later slot."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from drafts_service.domain.post_job import JobState, PostJob
from drafts_service.domain.slot_refusal import SlotRefusal, merged, standing
from drafts_service.domain.target import Target

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
TARGETS = tuple(Target(social_account_id=account, channel="facebook") for account in "ab")


def a_refusal(
    account: str = "a", version: int = 1, *, time: datetime = NOON, reason: str = "SLOT_TAKEN"
) -> SlotRefusal:
    return SlotRefusal(
        social_account_id=account,
        draft_version=version,
        schedule_time=time,
        reason=reason,
        message="",
        create_time=NOON,
    )


def a_job(state: JobState, time: datetime | None = LATER, account: str = "a") -> PostJob:
    return PostJob(
        organization_id="org",
        id=f"draft-{account}",
        draft_id="draft",
        version=1,
        target=Target(social_account_id=account, channel="facebook"),
        state=state,
        schedule_time=time,
    )


def test_the_newest_version_of_each_account_counts_in_any_order() -> None:
    refusals = [a_refusal(version=1), a_refusal(version=3), a_refusal(version=2), a_refusal("b")]
    for heard in permutations(refusals):
        for known in range(len(heard) + 1):
            found = merged(heard[:known], heard[known:], requested_time=NOON, accounts={"a", "b"})
            assert found == (a_refusal(version=3), a_refusal("b"))


def test_refusals_of_other_times_and_accounts_are_dropped() -> None:
    refusals = [a_refusal(time=LATER), a_refusal("c")]
    assert merged(refusals, refusals, requested_time=NOON, accounts={"a", "b"}) == ()
    assert merged(refusals, refusals, requested_time=None, accounts={"a", "b"}) == ()


@pytest.mark.parametrize(
    ("job", "stands"),
    [
        (None, True),
        (a_job(JobState.PENDING, None), True),
        (a_job(JobState.SCHEDULED), False),
        (a_job(JobState.READY), False),
        (a_job(JobState.SENDING), False),
        (a_job(JobState.PUBLISHED), False),
        # These jobs ended with an earlier slot.
        (a_job(JobState.MISSED), True),
        (a_job(JobState.CANCELED), True),
        (a_job(JobState.SCHEDULED, account="b"), True),
    ],
)
def test_a_later_slot_ends_a_refusal(job: PostJob | None, stands: bool) -> None:
    assert bool(standing([a_refusal()], TARGETS, [job] if job else [])) is stands


@pytest.mark.parametrize(
    ("job", "stands"),
    [
        (a_job(JobState.SCHEDULED), True),
        (a_job(JobState.SCHEDULED, NOON), False),
        (a_job(JobState.PUBLISHED), True),
    ],
)
@pytest.mark.parametrize("reason", ["ALREADY_QUEUED", "DRAFT_PUBLISHED"])
def test_the_slot_for_which_a_draft_was_refused_does_not_end_it(job: PostJob, stands: bool, reason: str) -> None:
    assert bool(standing([a_refusal(reason=reason)], TARGETS, [job])) is stands


def test_an_account_that_is_no_target_any_more_has_no_refusal() -> None:
    assert standing([a_refusal(), a_refusal("b")], TARGETS[:1], []) == [a_refusal()]
