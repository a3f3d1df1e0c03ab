"""Answers of providers as far as they can be trusted: values of the wrong kind are read as absent."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeGuard

from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.texts import is_name, storable, without_secrets
from publisher_service.domain.provider_error import ProviderError

_LONGEST_MESSAGE: Final = 500
_LONGEST_WAIT: Final = timedelta(hours=24)


def object_of(answer: bytes) -> dict[str, Any]:
    """Returns the JSON object of an answer; an empty one if it is anything else."""
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def redacted_error(
    answer: Answer, classify: Callable[[Answer], ProviderError], secrets: Sequence[str]
) -> ProviderError:
    """Returns the error of an answer, which may repeat the secrets of its request.

    A message is shortened, so they are taken out before that; and after it, where JSON has written them otherwise.
    """
    body = answer.body
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        body = body.replace(secret.encode(), b"***")
    error = classify(replace(answer, body=body))
    return replace(error, message=without_secrets(error.message, secrets))


def object_in(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the object under that name; an empty one if there is none."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def list_in(body: Mapping[str, Any], name: str) -> list[Any] | None:
    """Returns the list under that name; None if there is none, which proves nothing."""
    value = body.get(name)
    return value if isinstance(value, list) else None


def number_in(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_in(body: Mapping[str, Any], name: str, *, otherwise: str = "") -> str:
    """Returns the text under that name as it can be stored and shown."""
    value = body.get(name)
    return storable(value[:_LONGEST_MESSAGE]) if isinstance(value, str) and value else otherwise


def is_post_name(value: object) -> TypeGuard[str]:
    """Returns whether the value is a name that can be stored unchanged: any other proves nothing."""
    return isinstance(value, str) and is_name(value)


def time_of(value: object) -> datetime | None:
    """Returns an instant that was written in ISO 8601; None if it is none, or says no zone."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None


def retry_after(answer: Answer) -> timedelta | None:
    """Returns the seconds of the header Retry-After; None if it has none, or a date."""
    text = answer.headers.get(b"retry-after", b"")
    return seconds(int(text)) if text.isdigit() and len(text) < 10 else None


def life_in(body: Mapping[str, Any], name: str) -> timedelta | None:
    """Returns how long a token lives, by the seconds under that name; None if the answer does not say."""
    value = body.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return timedelta(seconds=value) if is_number and 0 <= value < 10**9 else None  # type: ignore[operator, arg-type]


def seconds(number: int) -> timedelta:
    """Returns a wait within a day, which can be added to a time."""
    return min(max(timedelta(0), timedelta(seconds=min(number, 10_000_000))), _LONGEST_WAIT)
