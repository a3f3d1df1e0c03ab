import pytest

from drafts_service.domain.account import AccountState, Obstacle, obstacle_of, state_reason
from drafts_service.domain.post_job import COUNTED_AS_ENDED, IN_FLIGHT, OPEN, JobState, PostJob
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
