from dataclasses import replace
from datetime import UTC, datetime

import pytest

from drafts_service.domain.account import AccountState, Obstacle, obstacle_of, shown_state, state_reason
from drafts_service.domain.post_job import COUNTED_AS_ENDED, IN_FLIGHT, OPEN, DraftState, JobState, PostJob
from drafts_service.domain.target import Target

PAGE = Target(social_account_id="page", channel="facebook")
MISSING = {"page": Obstacle.ACCOUNT_NOT_FOUND}


def job(state: JobState, reason: str = "") -> PostJob:
    return PostJob(
        organization_id="org", id="job", draft_id="draft", version=1, target=PAGE, state=state, state_reason=reason
    )


def test_an_absent_or_disconnected_account_is_an_obstacle() -> None:
    assert obstacle_of(AccountState.ABSENT) is Obstacle.ACCOUNT_NOT_FOUND
    assert obstacle_of(AccountState.DISCONNECTED) is Obstacle.ACCOUNT_NOT_CONNECTED
    assert obstacle_of(AccountState.CONNECTED) is Obstacle.NONE


def test_the_account_is_the_reason_before_a_job_exists() -> None:
    assert state_reason(PAGE, None, MISSING) == "ACCOUNT_NOT_FOUND"
    assert state_reason(PAGE, None, {}) == ""
    assert state_reason(PAGE, None, {"other": Obstacle.ACCOUNT_NOT_FOUND}) == ""


@pytest.mark.parametrize("state", sorted(OPEN))
def test_the_reason_of_a_waiting_job_goes_before_its_account(state: JobState) -> None:
    assert state_reason(PAGE, job(state), MISSING) == "ACCOUNT_NOT_FOUND"
    assert state_reason(PAGE, job(state, "NOT_APPROVED"), MISSING) == "NOT_APPROVED"


@pytest.mark.parametrize("state", sorted(COUNTED_AS_ENDED | IN_FLIGHT | {JobState.CANCELED}))
def test_an_account_is_no_reason_for_a_job_that_no_longer_waits(state: JobState) -> None:
    assert state_reason(PAGE, job(state), MISSING) == ""
    assert state_reason(PAGE, job(state, "TARGET_REMOVED"), MISSING) == "TARGET_REMOVED"


NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
GROUP = replace(PAGE, social_account_id="group")
DISCONNECTED = {"page": Obstacle.ACCOUNT_NOT_CONNECTED}


def scheduled(target: Target = PAGE, state: JobState = JobState.SCHEDULED, reason: str = "") -> PostJob:
    return replace(job(state, reason), id=target.social_account_id, target=target, schedule_time=NOON)


@pytest.mark.parametrize(
    ("jobs", "state"),
    [
        ([scheduled()], DraftState.BLOCKED),
        ([scheduled(state=JobState.READY)], DraftState.BLOCKED),
        ([scheduled(state=JobState.WAITING, reason="RATE_LIMITED")], DraftState.SCHEDULED),
        ([scheduled(), scheduled(GROUP)], DraftState.SCHEDULED),
        ([scheduled(), scheduled(GROUP, JobState.BLOCKED, "ACCOUNT_ON_HOLD")], DraftState.BLOCKED),
        ([scheduled(), scheduled(GROUP, JobState.BLOCKED, "BRAND_ON_HOLD")], DraftState.BLOCKED),
        ([scheduled(), scheduled(GROUP, JobState.BLOCKED, "ORGANIZATION_ON_HOLD")], DraftState.BLOCKED),
        ([scheduled(), replace(scheduled(GROUP), schedule_time=None)], DraftState.BLOCKED),
        ([scheduled(), scheduled(GROUP, JobState.PUBLISHED)], DraftState.BLOCKED),
        ([scheduled(), scheduled(GROUP, JobState.CANCELED)], DraftState.BLOCKED),
        ([], DraftState.SCHEDULED),
    ],
)
def test_a_draft_is_blocked_if_nothing_scheduled_can_be_sent(jobs: list[PostJob], state: DraftState) -> None:
    assert shown_state(DraftState.SCHEDULED, (PAGE, GROUP), jobs, DISCONNECTED) is state
    assert shown_state(DraftState.SCHEDULED, (PAGE, GROUP), jobs, {"page": Obstacle.NONE}) is DraftState.SCHEDULED or (
        all(each.state is JobState.BLOCKED for each in jobs)
    )


@pytest.mark.parametrize("state", [state for state in DraftState if state is not DraftState.SCHEDULED])
def test_accounts_change_no_other_state(state: DraftState) -> None:
    assert shown_state(state, (PAGE,), [scheduled()], DISCONNECTED) is state
