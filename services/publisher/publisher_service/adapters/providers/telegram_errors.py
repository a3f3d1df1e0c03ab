"""Errors of Telegram's Bot API, sorted by what they mean: it has no codes but those of HTTP, and descriptions.

The descriptions are those of https://github.com/tdlib/telegram-bot-api (Client.cpp).
"""

from typing import Final

from publisher_service.adapters.providers.answers import (
    number_in,
    object_in,
    object_of,
    retry_after,
    seconds,
    text_in,
)
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.provider_error import ErrorClass, ProviderError

# Parts of descriptions of a 400, in lower case.
_BAD_REQUESTS: Final = {
    "upgraded to a supergroup": (ErrorClass.TARGET_MOVED, "CHAT_MOVED"),
    "chat not found": (ErrorClass.TARGET_GONE, "CHAT_NOT_FOUND"),
    "user not found": (ErrorClass.TARGET_GONE, "CHAT_NOT_FOUND"),
    "peer_id_invalid": (ErrorClass.TARGET_GONE, "CHAT_NOT_FOUND"),
    "group chat was deactivated": (ErrorClass.TARGET_GONE, "CHAT_NOT_FOUND"),
    "not enough rights": (ErrorClass.TARGET_GONE, "CHAT_WRITE_FORBIDDEN"),
    "have no rights to send": (ErrorClass.TARGET_GONE, "CHAT_WRITE_FORBIDDEN"),
    "need administrator rights": (ErrorClass.TARGET_GONE, "CHAT_WRITE_FORBIDDEN"),
    "chat_write_forbidden": (ErrorClass.TARGET_GONE, "CHAT_WRITE_FORBIDDEN"),
    "chat_id is empty": (ErrorClass.CONFIG, "CHAT_ID_EMPTY"),
    "failed to get http url content": (ErrorClass.RETRY_LATER, "MEDIA_UNREACHABLE"),
    "wrong type of the web page content": (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    "wrong http url specified": (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    "image_process_failed": (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    "photo_invalid_dimensions": (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    "file is too big": (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    "message is too long": (ErrorClass.PERMANENT, "TEXT_TOO_LONG"),
    "caption is too long": (ErrorClass.PERMANENT, "TEXT_TOO_LONG"),
    "text is empty": (ErrorClass.PERMANENT, "TEXT_EMPTY"),
}
_STATUSES: Final = {
    400: (ErrorClass.PERMANENT, "HTTP_400"),
    # The token is in the path, so one that is cut off is not found.
    401: (ErrorClass.AUTH_REVOKED, "HTTP_401"),
    404: (ErrorClass.AUTH_REVOKED, "HTTP_404"),
    # It is always the chat that forbids it: blocked, kicked, deleted, never started.
    403: (ErrorClass.TARGET_GONE, "CHAT_FORBIDDEN"),
    413: (ErrorClass.PERMANENT_MEDIA, "MEDIA_REFUSED"),
    429: (ErrorClass.RATE_USER, "HTTP_429"),
}


def telegram_error(answer: Answer) -> ProviderError:
    """Returns what an answer means that is no success. Only one that Telegram itself has written is certain."""
    body = object_of(answer.body)
    description = text_in(body, "description")
    kind, reason = ErrorClass.UNKNOWN_OUTCOME, f"HTTP_{answer.status}"
    if body.get("ok") is False and description:
        kind, reason = _STATUSES.get(answer.status, (kind, reason))
        if answer.status == 400:
            kind, reason = _of_bad_request(description, moved=moved_to(answer) is not None)
    message = description or f"Telegram answered {answer.status}"
    wait = number_in(object_in(body, "parameters"), "retry_after")
    asked = seconds(wait) if wait is not None else retry_after(answer)
    return ProviderError(kind=kind, reason=reason, message=message, wait=asked if answer.status == 429 else None)


def moved_to(answer: Answer) -> int | None:
    """Returns the chat to which a group has moved, if that is why the request was refused."""
    body = object_of(answer.body)
    chat = number_in(object_in(body, "parameters"), "migrate_to_chat_id")
    return chat if answer.status == 400 and body.get("ok") is False else None


def _of_bad_request(description: str, *, moved: bool) -> tuple[ErrorClass, str]:
    if moved:
        return ErrorClass.TARGET_MOVED, "CHAT_MOVED"
    found = (meaning for part, meaning in _BAD_REQUESTS.items() if part in description.lower())
    return next(found, _STATUSES[400])
