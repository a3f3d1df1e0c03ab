"""Errors of providers, sorted by what they mean for a post. Each adapter maps its codes to these classes."""

from datetime import timedelta
from enum import StrEnum
from typing import Final, assert_never

from publisher_service.domain.outcome import Ambiguous, AuthRefused, Level, NotSent, Outcome, RateLimited, Rejected
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Preparing, Unfit, Void
from servicekit.record import record


class ErrorClass(StrEnum):
    # The token is over; a newer one may do.
    AUTH_EXPIRED = "auth_expired"
    AUTH_REVOKED = "auth_revoked"
    # The token may not do this.
    AUTH_SCOPE = "auth_scope"
    # The owner of the account has to do something at the provider.
    AUTH_USER_ACTION = "auth_user_action"
    # The provider holds the account's posts back for a while.
    BLOCKED_POLICY = "blocked_policy"
    # Sometimes untrue: to be asked a second time.
    CHECK_THEN_FAIL = "check_then_fail"
    # A mistake in our own settings.
    CONFIG = "config"
    # The same was posted before; by this post, if an earlier request of it may have gone out.
    DUPLICATE_HINT = "duplicate_hint"
    # The same was posted before, and the answer names it.
    DUPLICATE_PROOF = "duplicate_proof"
    NOT_READY = "not_ready"
    OK = "ok"
    PERMANENT = "permanent"
    PERMANENT_MEDIA = "permanent_media"
    # A limit of days or longer.
    QUOTA_EXHAUSTED = "quota_exhausted"
    # Limits of the application, of a business use case, of an operation, of a page, of an account.
    RATE_APP = "rate_app"
    RATE_BUC = "rate_buc"
    RATE_CUSTOM = "rate_custom"
    RATE_PAGE = "rate_page"
    RATE_USER = "rate_user"
    # Nothing was done; a later request may succeed.
    RETRY_LATER = "retry_later"
    # What was prepared is lost.
    RETRY_NEW_CONTAINER = "retry_new_container"
    RETRY_NOW = "retry_now"
    RETRY_SAME_CONTAINER = "retry_same_container"
    RETRY_SAME_KEY = "retry_same_key"
    # The page, chat, address or contact is not there, or wants no posts.
    TARGET_GONE = "target_gone"
    TARGET_MOVED = "target_moved"
    UNKNOWN_OUTCOME = "unknown_outcome"
    # Something may have been done, if the request was one to publish.
    UNKNOWN_OUTCOME_ON_PUBLISH = "unknown_outcome_on_publish"


@record(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """An error answer. `wait` is how long the provider asks to wait; None if it does not say."""

    kind: ErrorClass
    # The provider's code, for people who look it up.
    reason: str
    message: str
    wait: timedelta | None = None


_LEVELS: Final = {
    ErrorClass.RATE_APP: Level.APPLICATION,
    ErrorClass.RATE_BUC: Level.ACCOUNT,
    ErrorClass.RATE_CUSTOM: Level.ACCOUNT,
    ErrorClass.RATE_PAGE: Level.ACCOUNT,
    ErrorClass.RATE_USER: Level.ACCOUNT,
    ErrorClass.QUOTA_EXHAUSTED: Level.CHANNEL,
    ErrorClass.BLOCKED_POLICY: Level.ACCOUNT,
    # A wait of one account: a mistake in the settings meets each, but no tenant can close a provider for the others.
    ErrorClass.CONFIG: Level.ACCOUNT,
}
_WAITS: Final = {
    ErrorClass.RATE_APP: timedelta(hours=1),
    ErrorClass.RATE_BUC: timedelta(minutes=15),
    ErrorClass.RATE_CUSTOM: timedelta(minutes=5),
    ErrorClass.RATE_PAGE: timedelta(minutes=15),
    ErrorClass.RATE_USER: timedelta(minutes=5),
    ErrorClass.QUOTA_EXHAUSTED: timedelta(hours=1),
    ErrorClass.BLOCKED_POLICY: timedelta(hours=6),
    ErrorClass.CONFIG: timedelta(minutes=15),
}
"""How long to wait where the provider does not say."""


def wait_of(error: ProviderError) -> timedelta | None:
    """Returns how long to wait after the error: as the provider says, or as its class has it; None if it has none."""
    return error.wait if error.wait is not None else _WAITS.get(error.kind)


def outcome_of(error: ProviderError) -> Outcome:
    """Returns what the error means when it answers the request that puts a post out.

    What is not a definite refusal is Ambiguous: the post may be out.
    """
    kind, reason, message = error.kind, error.reason, error.message
    match kind:
        case ErrorClass.AUTH_EXPIRED | ErrorClass.AUTH_REVOKED | ErrorClass.AUTH_SCOPE | ErrorClass.AUTH_USER_ACTION:
            return AuthRefused(message=message)
        case (
            ErrorClass.RATE_APP
            | ErrorClass.RATE_BUC
            | ErrorClass.RATE_CUSTOM
            | ErrorClass.RATE_PAGE
            | ErrorClass.RATE_USER
            | ErrorClass.QUOTA_EXHAUSTED
            | ErrorClass.BLOCKED_POLICY
            | ErrorClass.CONFIG
        ):
            return RateLimited(message=message, retry_after=wait_of(error) or _WAITS[kind], level=_LEVELS[kind])
        case ErrorClass.PERMANENT | ErrorClass.PERMANENT_MEDIA | ErrorClass.TARGET_MOVED:
            return Rejected(reason=reason, message=message)
        case ErrorClass.DUPLICATE_HINT:
            return Rejected(reason=reason, message=message, is_repeat=True)
        case ErrorClass.TARGET_GONE:
            return Rejected(reason=reason, message=message, peer_blocked=True)
        case ErrorClass.RETRY_LATER | ErrorClass.RETRY_NOW:
            return NotSent(reason=reason, message=message)
        case (
            ErrorClass.CHECK_THEN_FAIL
            | ErrorClass.DUPLICATE_PROOF
            | ErrorClass.NOT_READY
            | ErrorClass.OK
            | ErrorClass.RETRY_NEW_CONTAINER
            | ErrorClass.RETRY_SAME_CONTAINER
            | ErrorClass.RETRY_SAME_KEY
            | ErrorClass.UNKNOWN_OUTCOME
            | ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH
        ):
            return Ambiguous(reason=reason, message=message)
    assert_never(kind)


def preparing_of(error: ProviderError) -> Preparing:
    """Returns what the error means when it answers a step of a preparation, which may be repeated."""
    kind, reason, message = error.kind, error.reason, error.message
    match kind:
        case ErrorClass.AUTH_EXPIRED | ErrorClass.AUTH_REVOKED | ErrorClass.AUTH_SCOPE | ErrorClass.AUTH_USER_ACTION:
            return CredentialsInvalid(message=message)
        case (
            ErrorClass.PERMANENT
            | ErrorClass.PERMANENT_MEDIA
            | ErrorClass.DUPLICATE_HINT
            | ErrorClass.TARGET_GONE
            | ErrorClass.TARGET_MOVED
        ):
            return Unfit(reason=reason, message=message)
        case ErrorClass.RETRY_NEW_CONTAINER:
            return Void(reason=reason, message=message)
        case (
            ErrorClass.BLOCKED_POLICY
            | ErrorClass.CHECK_THEN_FAIL
            | ErrorClass.CONFIG
            | ErrorClass.DUPLICATE_PROOF
            | ErrorClass.NOT_READY
            | ErrorClass.OK
            | ErrorClass.QUOTA_EXHAUSTED
            | ErrorClass.RATE_APP
            | ErrorClass.RATE_BUC
            | ErrorClass.RATE_CUSTOM
            | ErrorClass.RATE_PAGE
            | ErrorClass.RATE_USER
            | ErrorClass.RETRY_LATER
            | ErrorClass.RETRY_NOW
            | ErrorClass.RETRY_SAME_CONTAINER
            | ErrorClass.RETRY_SAME_KEY
            | ErrorClass.UNKNOWN_OUTCOME
            | ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH
        ):
            return Delayed(message=message, retry_after=wait_of(error))
    assert_never(kind)
