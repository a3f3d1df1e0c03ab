"""An error of a provider means the same for every post of its class; nothing that may be out is called refused."""

from datetime import timedelta

import pytest

from publisher_service.domain.outcome import Ambiguous, AuthRefused, Level, NotSent, Outcome, RateLimited, Rejected
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Preparing, Unfit, Void
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of, preparing_of, wait_of

E = ErrorClass
MEANINGS: dict[ErrorClass, tuple[type[Outcome], type[Preparing]]] = {
    E.AUTH_EXPIRED: (AuthRefused, CredentialsInvalid),
    E.AUTH_REVOKED: (AuthRefused, CredentialsInvalid),
    E.AUTH_SCOPE: (AuthRefused, CredentialsInvalid),
    E.AUTH_USER_ACTION: (AuthRefused, CredentialsInvalid),
    E.BLOCKED_POLICY: (RateLimited, Delayed),
    E.CHECK_THEN_FAIL: (Ambiguous, Delayed),
    E.CONFIG: (RateLimited, Delayed),
    E.DUPLICATE_HINT: (Rejected, Unfit),
    E.DUPLICATE_PROOF: (Ambiguous, Delayed),
    E.NOT_READY: (Ambiguous, Delayed),
    E.OK: (Ambiguous, Delayed),
    E.PERMANENT: (Rejected, Unfit),
    E.PERMANENT_MEDIA: (Rejected, Unfit),
    E.QUOTA_EXHAUSTED: (RateLimited, Delayed),
    E.RATE_APP: (RateLimited, Delayed),
    E.RATE_BUC: (RateLimited, Delayed),
    E.RATE_CUSTOM: (RateLimited, Delayed),
    E.RATE_PAGE: (RateLimited, Delayed),
    E.RATE_USER: (RateLimited, Delayed),
    E.RETRY_LATER: (NotSent, Delayed),
    E.RETRY_NEW_CONTAINER: (Ambiguous, Void),
    E.RETRY_NOW: (NotSent, Delayed),
    E.RETRY_SAME_CONTAINER: (Ambiguous, Delayed),
    E.RETRY_SAME_KEY: (Ambiguous, Delayed),
    E.TARGET_GONE: (Rejected, Unfit),
    E.TARGET_MOVED: (Rejected, Unfit),
    E.UNKNOWN_OUTCOME: (Ambiguous, Delayed),
    E.UNKNOWN_OUTCOME_ON_PUBLISH: (Ambiguous, Delayed),
}


def error(kind: ErrorClass, wait: timedelta | None = None) -> ProviderError:
    return ProviderError(kind=kind, reason="CODE_1", message="no", wait=wait)


@pytest.mark.parametrize("kind", ErrorClass)
def test_each_class_means_one_thing_to_a_send_and_to_a_preparation(kind: ErrorClass) -> None:
    sent, prepared = MEANINGS[kind]
    assert type(outcome_of(error(kind))) is sent
    assert type(preparing_of(error(kind))) is prepared


@pytest.mark.parametrize("kind", [kind for kind in ErrorClass if MEANINGS[kind][0] is RateLimited])
def test_the_providers_own_wait_goes_first(kind: ErrorClass) -> None:
    named = outcome_of(error(kind, timedelta(seconds=7)))
    unnamed = outcome_of(error(kind))
    assert isinstance(named, RateLimited)
    assert isinstance(unnamed, RateLimited)
    assert named.retry_after == timedelta(seconds=7)
    assert unnamed.retry_after == wait_of(error(kind))
    assert unnamed.retry_after >= timedelta(minutes=5)


def test_only_a_limit_of_the_application_stops_all_accounts() -> None:
    limited = [outcome_of(error(kind)) for kind in ErrorClass if MEANINGS[kind][0] is RateLimited]
    levels = [each.level for each in limited if isinstance(each, RateLimited)]
    assert levels.count(Level.APPLICATION) == 1
    assert outcome_of(error(ErrorClass.RATE_APP)).level is Level.APPLICATION  # type: ignore[union-attr]


def test_a_target_that_is_gone_counts_against_its_destination() -> None:
    assert outcome_of(error(ErrorClass.DUPLICATE_HINT)) == Rejected(reason="CODE_1", message="no", is_repeat=True)
    assert outcome_of(error(ErrorClass.TARGET_GONE)) == Rejected(reason="CODE_1", message="no", peer_blocked=True)


def test_a_preparation_waits_as_long_as_the_provider_says() -> None:
    assert preparing_of(error(ErrorClass.RATE_BUC, timedelta(minutes=19))) == Delayed(
        message="no", retry_after=timedelta(minutes=19)
    )
    assert preparing_of(error(ErrorClass.UNKNOWN_OUTCOME)) == Delayed(message="no", retry_after=None)
