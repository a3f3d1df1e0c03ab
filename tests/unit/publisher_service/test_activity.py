"""Activities: what the end of an attempt adds to the log of its account."""

from datetime import timedelta

import pytest

from publisher_service.domain.activity import MAY_HAVE_EFFECT, ActivityFilter, ActivityOutcome, outcome_of
from publisher_service.domain.settlement import AttemptState
from servicekit.faults import InvalidField
from tests.unit.publisher_service.post_jobs import NOW

SENDING, UNKNOWN = AttemptState.SENDING, AttemptState.UNKNOWN


@pytest.mark.parametrize(
    ("before", "after", "reason", "outcome"),
    [
        (SENDING, AttemptState.ACCEPTED, "", ActivityOutcome.SUCCESS),
        (SENDING, AttemptState.REJECTED, "REJECTED", ActivityOutcome.FAILED),
        (SENDING, UNKNOWN, "TIMEOUT", ActivityOutcome.UNKNOWN),
        (SENDING, AttemptState.NOT_SENT, "RATE_LIMITED", ActivityOutcome.RATE_LIMITED),
        (SENDING, AttemptState.NOT_SENT, "NO_CONNECTION", None),
        (UNKNOWN, UNKNOWN, "TIMEOUT", None),
        (UNKNOWN, AttemptState.ACCEPTED, "", ActivityOutcome.SUCCESS),
        (UNKNOWN, AttemptState.ABSENT, "", ActivityOutcome.ABSENT),
        (UNKNOWN, AttemptState.NOT_SENT, "CLAIM_FAILED", ActivityOutcome.ABSENT),
        # Proof that comes late, against what was said before.
        (AttemptState.ABSENT, AttemptState.ACCEPTED, "", ActivityOutcome.SUCCESS),
        (UNKNOWN, AttemptState.ABANDONED, "", None),
    ],
)
def test_the_end_of_an_attempt_is_logged_once(
    before: AttemptState, after: AttemptState, reason: str, outcome: ActivityOutcome | None
) -> None:
    assert outcome_of(before, after, reason) is outcome


def test_what_is_out_or_may_be_out_counts_as_used() -> None:
    assert {SENDING, UNKNOWN, AttemptState.ACCEPTED} == MAY_HAVE_EFFECT


def test_a_time_range_must_not_be_empty() -> None:
    with pytest.raises(InvalidField):
        ActivityFilter(organization_id="acme", account_id="page", start_time=NOW, end_time=NOW)
    ActivityFilter(organization_id="acme", account_id="page", start_time=NOW, end_time=NOW + timedelta(seconds=1))
