"""Replies of mail servers, sorted by what they mean for a mail: by the enhanced code of RFC 3463, then by the code."""

import re
from datetime import timedelta
from enum import StrEnum
from typing import Final

from publisher_service.adapters.providers.texts import storable
from publisher_service.domain.provider_error import ErrorClass, ProviderError
from servicekit.record import record

_LONGEST_TEXT: Final = 400
_ENHANCED: Final = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})(?:\s|$)")
_SERVER_WAITS: Final = timedelta(minutes=5)
_A_DAY: Final = timedelta(hours=24)
# Codes about the server or the account, not about one mailbox: the next mail would meet them too.
_WHOLE_SERVER: Final = frozenset({421, 452, 454})
# Subjects and details that say that the address of the recipient leads nowhere.
_DEAD_ADDRESS: Final = frozenset({"1.0", "1.1", "1.2", "1.3", "1.6", "1.10", "2.1"})
_DAILY_LIMIT: Final = frozenset({"4.5"})
_CLASSES: Final = {
    530: ErrorClass.CONFIG,
    534: ErrorClass.AUTH_USER_ACTION,
    535: ErrorClass.AUTH_REVOKED,
    538: ErrorClass.CONFIG,
}


@record(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply of a server. Its lines are joined by spaces."""

    code: int
    text: str


class Step(StrEnum):
    """A step of a session: a reply means something else in each."""

    HELLO = "HELLO"
    LOGIN = "LOGIN"
    SENDER = "SENDER"
    RECIPIENT = "RECIPIENT"
    # The mail is announced, but not handed over.
    DATA = "DATA"
    # The mail is handed over.
    END = "END"


def classify_reply(code: int, text: str) -> ProviderError:
    """Returns what a reply means; the class OK for 250 and its like. A code that is none proves nothing."""
    enhanced = _ENHANCED.match(text)
    detail = f"{enhanced[2]}.{enhanced[3]}" if enhanced and int(enhanced[1]) == code // 100 else ""
    kind, wait = _kind(code, detail, text)
    reason = f"SMTP_{code}" + (f"_{enhanced[0].strip()}" if enhanced else "")
    return ProviderError(
        kind=kind, reason=reason, message=f"{code} {storable(text)[:_LONGEST_TEXT]}".strip(), wait=wait
    )


def classify_reply_at(step: Step, reply: Reply) -> ProviderError:
    """Returns what a reply means at a step: whose fault a refusal is depends on what was refused."""
    error = classify_reply(reply.code, reply.text)
    is_refusal = error.kind in {ErrorClass.PERMANENT, ErrorClass.TARGET_GONE}
    if step is Step.HELLO and is_refusal:
        return _as(error, ErrorClass.CONFIG)
    if step is Step.LOGIN and is_refusal:
        return _as(error, ErrorClass.AUTH_USER_ACTION)
    if step is Step.SENDER and error.kind is ErrorClass.TARGET_GONE:
        # The address in question is our own.
        return _as(error, ErrorClass.PERMANENT)
    return error


def _kind(code: int, detail: str, text: str) -> tuple[ErrorClass, timedelta | None]:
    if code // 100 == 4:
        is_later = code in _WHOLE_SERVER or (detail == "7.1" and "list" in text.lower())
        return ErrorClass.RETRY_LATER, _SERVER_WAITS if is_later else None
    if code // 100 == 2:
        return ErrorClass.OK, None
    if code // 100 != 5:
        return ErrorClass.UNKNOWN_OUTCOME, None
    if code in _CLASSES:
        return _CLASSES[code], None
    if detail in _DAILY_LIMIT:
        return ErrorClass.QUOTA_EXHAUSTED, _A_DAY
    return (ErrorClass.TARGET_GONE if detail in _DEAD_ADDRESS else ErrorClass.PERMANENT), None


def _as(error: ProviderError, kind: ErrorClass) -> ProviderError:
    return ProviderError(kind=kind, reason=error.reason, message=error.message, wait=error.wait)
