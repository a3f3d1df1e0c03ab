"""Errors of LinkedIn, sorted by what they mean.

https://learn.microsoft.com/linkedin/shared/api-guide/concepts/error-handling
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from publisher_service.adapters.providers.answers import list_in, number_in, object_in, object_of, retry_after, text_in
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.outcome import Level
from publisher_service.domain.provider_error import ErrorClass, ProviderError

INVALID_GRANT: Final = "invalid_grant"
# Parts of messages, in lower case; some errors have no code.
_MESSAGES: Final = {
    # Both pass in practice. The first is about what a post has made, so the post may be there.
    "unable to obtain activity": ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    "resource is forbidden": ErrorClass.RETRY_LATER,
    "content is a duplicate of": ErrorClass.DUPLICATE_PROOF,
}
_CODES: Final = {
    "EXPIRED_ACCESS_TOKEN": ErrorClass.AUTH_EXPIRED,
    "REVOKED_ACCESS_TOKEN": ErrorClass.AUTH_REVOKED,
    "ACCESS_DENIED": ErrorClass.AUTH_SCOPE,
    "NONEXISTENT_VERSION": ErrorClass.CONFIG,
    "VERSION_MISSING": ErrorClass.CONFIG,
    "DUPLICATE_POST": ErrorClass.DUPLICATE_PROOF,
    "FIELD_LENGTH_TOO_LONG": ErrorClass.PERMANENT,
    "MEDIA_ASSET_WAITING_UPLOAD": ErrorClass.NOT_READY,
    "MEDIA_ASSET_PROCESSING_FAILED": ErrorClass.PERMANENT_MEDIA,
    "CONFLICT": ErrorClass.RETRY_NOW,
    # Of the token endpoint.
    INVALID_GRANT: ErrorClass.AUTH_REVOKED,
    "invalid_request": ErrorClass.PERMANENT,
    "invalid_redirect_uri": ErrorClass.PERMANENT,
    # The id or the secret of our own application.
    "invalid_client": ErrorClass.CONFIG,
    "unauthorized_client": ErrorClass.CONFIG,
}
_SERVICE_CODES: Final = {65600: ErrorClass.AUTH_REVOKED, 65601: ErrorClass.AUTH_REVOKED, 65602: ErrorClass.AUTH_EXPIRED}
_STATUSES: Final = {
    401: ErrorClass.AUTH_REVOKED,
    403: ErrorClass.AUTH_SCOPE,
    408: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    409: ErrorClass.RETRY_NOW,
    426: ErrorClass.CONFIG,
}
# Comments have a limit of a minute besides those of a day.
_MINUTE: Final = timedelta(minutes=1)
# A daily limit ends at midnight, but not at once, and clocks differ.
_AFTER_MIDNIGHT: Final = timedelta(minutes=3)
_DUPLICATE: Final = re.compile(r"duplicate of (urn:li:(?:share|ugcPost|activity):[0-9]{1,20})(?![\w:])", re.IGNORECASE)


def linkedin_error(answer: Answer) -> ProviderError:
    """Returns what an answer means that is no success."""
    body = object_of(answer.body)
    message = text_in(body, "message") or text_in(body, "error_description") or f"LinkedIn answered {answer.status}"
    codes = _codes(body)
    kind = _kind(answer.status, message.lower(), codes, number_in(body, "serviceErrorCode"), is_of_linkedin=bool(body))
    wait = retry_after(answer)
    if answer.status == 429 and wait is None and "throttled" in message.lower():
        wait = _MINUTE
    return ProviderError(kind=kind, reason=codes[0] if codes else f"HTTP_{answer.status}", message=message, wait=wait)


def duplicate_of(answer: Answer) -> str:
    """Returns the name of the post that the refusal of a duplicate names; empty if it names none."""
    message = object_of(answer.body).get("message")
    named = _DUPLICATE.search(message) if isinstance(message, str) else None
    return named[1] if named else ""


def level_of(error: ProviderError) -> Level:
    """Returns the level of a limit of a day: the application, or the account."""
    return Level.APPLICATION if "throttle application" in error.message.lower() else Level.ACCOUNT


def until_reset(now: datetime) -> timedelta:
    """Returns the wait until the daily limits start again, which is at midnight UTC; no answer says so."""
    midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
    return midnight - now + _AFTER_MIDNIGHT


def _kind(
    status: int, message: str, codes: tuple[str, ...], service_code: int | None, *, is_of_linkedin: bool
) -> ErrorClass:
    if not 400 <= status < 500:
        return ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH
    if not is_of_linkedin:
        return ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH  # something on the way has answered
    if status == 429:
        return ErrorClass.QUOTA_EXHAUSTED if "day limit" in message else ErrorClass.RATE_USER
    for part, kind in _MESSAGES.items():
        if part in message:
            return kind
    for code in codes:
        if code in _CODES:
            return _CODES[code]
    return _SERVICE_CODES.get(service_code or 0) or _STATUSES.get(status, ErrorClass.PERMANENT)


def _codes(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the codes of an error, the most exact first."""
    inputs = list_in(object_in(body, "errorDetails"), "inputErrors") or []
    found = [text_in(each, "code") for each in inputs[:10] if isinstance(each, dict)]
    return tuple(code[:64] for code in (*found, text_in(body, "code"), text_in(body, "error")) if code)
