"""Errors of Meta's Graph API as data, and what the headers about its usage ask for.

https://developers.facebook.com/docs/graph-api/guides/error-handling and
https://developers.facebook.com/docs/graph-api/overview/rate-limiting.
The status of an answer varies, so the codes decide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from publisher_service.adapters.providers.answers import number_in, object_in, object_of, retry_after, seconds, text_in
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.outcome import Level, Quota
from publisher_service.domain.provider_error import ErrorClass, ProviderError

SUBCODES: Final[Mapping[int, ErrorClass]] = {
    # An object is missing, or the answer is wrong: reads of containers and posts sometimes get it without a reason.
    33: ErrorClass.CHECK_THEN_FAIL,
    458: ErrorClass.AUTH_REVOKED,
    459: ErrorClass.AUTH_USER_ACTION,
    460: ErrorClass.AUTH_REVOKED,
    463: ErrorClass.AUTH_EXPIRED,
    464: ErrorClass.AUTH_USER_ACTION,
    467: ErrorClass.AUTH_REVOKED,
    492: ErrorClass.AUTH_SCOPE,
    # Pages.
    1346003: ErrorClass.BLOCKED_POLICY,
    1363047: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    1366046: ErrorClass.PERMANENT_MEDIA,
    1366051: ErrorClass.DUPLICATE_HINT,
    1390008: ErrorClass.RATE_CUSTOM,
    1404006: ErrorClass.AUTH_USER_ACTION,
    1404078: ErrorClass.AUTH_USER_ACTION,
    1404102: ErrorClass.PERMANENT,
    1404112: ErrorClass.BLOCKED_POLICY,
    1609005: ErrorClass.PERMANENT,
    1609008: ErrorClass.PERMANENT,
    1609010: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    2069019: ErrorClass.PERMANENT_MEDIA,
    4854002: ErrorClass.AUTH_USER_ACTION,
    # Instagram.
    2207001: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    2207003: ErrorClass.RETRY_NEW_CONTAINER,
    2207004: ErrorClass.PERMANENT_MEDIA,
    2207005: ErrorClass.PERMANENT_MEDIA,
    2207006: ErrorClass.RETRY_NEW_CONTAINER,
    2207008: ErrorClass.RETRY_SAME_CONTAINER,
    2207009: ErrorClass.PERMANENT_MEDIA,
    2207010: ErrorClass.PERMANENT,
    2207020: ErrorClass.RETRY_NEW_CONTAINER,
    2207023: ErrorClass.PERMANENT,
    2207026: ErrorClass.PERMANENT_MEDIA,
    2207027: ErrorClass.NOT_READY,
    2207028: ErrorClass.PERMANENT,
    2207032: ErrorClass.RETRY_NEW_CONTAINER,
    2207040: ErrorClass.PERMANENT,
    2207042: ErrorClass.QUOTA_EXHAUSTED,
    2207050: ErrorClass.AUTH_USER_ACTION,
    # Under the code of a rate limit, and sometimes of a post that went out.
    2207051: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    2207052: ErrorClass.RETRY_NEW_CONTAINER,
    2207053: ErrorClass.RETRY_NEW_CONTAINER,
    2207057: ErrorClass.PERMANENT_MEDIA,
    # Threads.
    4279009: ErrorClass.NOT_READY,
}
CODES: Final[Mapping[int, ErrorClass]] = {
    -2: ErrorClass.RETRY_NEW_CONTAINER,
    -1: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    1: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    2: ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH,
    3: ErrorClass.AUTH_SCOPE,
    4: ErrorClass.RATE_APP,
    9: ErrorClass.QUOTA_EXHAUSTED,
    10: ErrorClass.AUTH_SCOPE,
    17: ErrorClass.RATE_USER,
    24: ErrorClass.RETRY_NEW_CONTAINER,
    25: ErrorClass.AUTH_USER_ACTION,
    32: ErrorClass.RATE_PAGE,
    100: ErrorClass.PERMANENT,
    # The id or the secret of our own application.
    101: ErrorClass.CONFIG,
    102: ErrorClass.AUTH_REVOKED,
    190: ErrorClass.AUTH_EXPIRED,
    # The permissions of an API.
    **dict.fromkeys(range(200, 300), ErrorClass.AUTH_SCOPE),
    324: ErrorClass.PERMANENT_MEDIA,
    341: ErrorClass.RATE_CUSTOM,
    352: ErrorClass.PERMANENT_MEDIA,
    368: ErrorClass.BLOCKED_POLICY,
    506: ErrorClass.DUPLICATE_HINT,
    613: ErrorClass.RATE_CUSTOM,
    803: ErrorClass.PERMANENT,
    9004: ErrorClass.RETRY_NEW_CONTAINER,
    9007: ErrorClass.NOT_READY,
    36000: ErrorClass.PERMANENT_MEDIA,
    36001: ErrorClass.PERMANENT_MEDIA,
    36003: ErrorClass.PERMANENT_MEDIA,
    36004: ErrorClass.PERMANENT,
    # Limits of the business use cases: 80001 is that of pages, 80002 that of Instagram.
    **dict.fromkeys(range(80000, 80015), ErrorClass.RATE_BUC),
    1609005: ErrorClass.PERMANENT,
}
RATES: Final = frozenset(
    {
        ErrorClass.RATE_APP,
        ErrorClass.RATE_BUC,
        ErrorClass.RATE_CUSTOM,
        ErrorClass.RATE_PAGE,
        ErrorClass.RATE_USER,
    }
)
TOKENS: Final = frozenset({ErrorClass.AUTH_EXPIRED, ErrorClass.AUTH_REVOKED})
"""Classes of a token that is over: no call with it does anything."""
CREDENTIALS: Final = TOKENS | {ErrorClass.AUTH_SCOPE, ErrorClass.AUTH_USER_ACTION}
NO_ANSWER: Final = "NO_ANSWER"
TOO_LONG: Final = "LIST_TOO_LONG"
UNREADABLE: Final = "UNREADABLE_ANSWER"

_APPLICATION: Final = b"x-app-usage"
_BUSINESS: Final = b"x-business-use-case-usage"
_PAGE: Final = b"x-page-usage"
_SHARES: Final = ("call_count", "total_cputime", "total_time")
# How long nothing is sent after a limit is used up, if no header says more: usage is counted over a rolling hour.
_USED_UP: Final = timedelta(minutes=5)


def meta_error(answer: Answer) -> ProviderError:
    """Returns what an answer that is no success means: its subcode decides, then its code, its flag, its status."""
    error = object_in(object_of(answer.body), "error")
    code, subcode = number_in(error, "code"), number_in(error, "error_subcode")
    kind = _kind(error, code, subcode, answer.status)
    message = text_in(error, "error_user_msg") or text_in(error, "message") or f"Meta answered {answer.status}"
    wait = _regain(answer) or retry_after(answer) if kind in RATES else None
    return ProviderError(kind=kind, reason=_reason(code, subcode, answer.status), message=message, wait=wait)


def is_token_over(error: ProviderError) -> bool:
    """Returns whether a token is of no use until its owner does something: code 190 or 102, with any subcode."""
    return error.kind in TOKENS or error.kind is ErrorClass.AUTH_USER_ACTION


def of_comment(error: ProviderError) -> ProviderError:
    """Returns what an error means for a comment: a token that may post may still not be allowed to comment."""
    if error.kind is ErrorClass.AUTH_SCOPE:
        return replace(error, kind=ErrorClass.PERMANENT, reason="COMMENTS_NOT_ALLOWED")
    return error


def class_of_subcode(subcode: int) -> ErrorClass | None:
    return SUBCODES.get(subcode)


def usage_quotas(answer: Answer) -> tuple[Quota, ...]:
    """Returns the limits of calls that are used up; a smaller share of one tells no number of posts."""
    return tuple(_quotas(answer))


def _kind(error: Mapping[str, Any], code: int | None, subcode: int | None, status: int) -> ErrorClass:
    if code is None:
        # Not in Meta's words: a proxy answers with a status, too.
        return ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH
    if subcode is not None and subcode in SUBCODES:
        return SUBCODES[subcode]
    if code in CODES:
        return CODES[code]
    if error.get("is_transient") is True:
        return ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH
    if status == 401:
        return ErrorClass.AUTH_EXPIRED
    if status == 429:
        return ErrorClass.RATE_USER
    is_refusal = 400 <= status < 500 and status != 408
    return ErrorClass.PERMANENT if is_refusal else ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH


def _reason(code: int | None, subcode: int | None, status: int) -> str:
    if code is None:
        return f"HTTP_{status}"
    return f"META_{code}_{subcode}"[:64] if subcode is not None else f"META_{code}"[:64]


def _quotas(answer: Answer) -> Iterator[Quota]:
    if _is_used_up(object_of(answer.headers.get(_APPLICATION, b""))):
        yield Quota(level=Level.APPLICATION, remaining=0, reset_after=_USED_UP)
    if _is_used_up(object_of(answer.headers.get(_PAGE, b""))):
        yield Quota(level=Level.ACCOUNT, remaining=0, reset_after=_USED_UP)
    for usage in _usages(answer):
        if _is_used_up(usage) or _minutes(usage):
            yield Quota(level=Level.ACCOUNT, remaining=0, reset_after=_minutes(usage) or _USED_UP)


def _is_used_up(usage: Mapping[str, Any]) -> bool:
    """Returns whether one of the shares, in percent, has reached the limit."""
    return any((number_in(usage, name) or 0) >= 100 for name in _SHARES)


def _regain(answer: Answer) -> timedelta | None:
    """Returns the longest wait that the answer asks for."""
    return max((_minutes(usage) for usage in _usages(answer)), default=timedelta(0)) or None


def _minutes(usage: Mapping[str, Any]) -> timedelta:
    return seconds(60 * (number_in(usage, "estimated_time_to_regain_access") or 0))


def _usages(answer: Answer) -> Iterator[Mapping[str, Any]]:
    """Yields the usage of each business use case: the header has a list of them by the id of a page or business."""
    for entries in object_of(answer.headers.get(_BUSINESS, b"")).values():
        if isinstance(entries, list):
            yield from (entry for entry in entries if isinstance(entry, dict))
