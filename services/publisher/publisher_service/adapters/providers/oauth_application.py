"""Our application at a provider, and what answers to it mean when it asks for tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

from publisher_service.adapters.providers.answers import life_in
from publisher_service.domain.connecting import GrantDelayed, GrantRefused
from publisher_service.domain.outcome import Ambiguous, NotSent
from publisher_service.domain.provider_error import ErrorClass, ProviderError, wait_of
from publisher_service.domain.refresh import RefreshDelayed, RefreshRefused

FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}

T = TypeVar("T")

_LATER: Final = frozenset(
    {
        ErrorClass.RATE_APP,
        ErrorClass.RATE_BUC,
        ErrorClass.RATE_CUSTOM,
        ErrorClass.RATE_PAGE,
        ErrorClass.RATE_USER,
        ErrorClass.QUOTA_EXHAUSTED,
    }
)
_DEFINITE: Final = frozenset(
    {
        ErrorClass.AUTH_EXPIRED,
        ErrorClass.AUTH_REVOKED,
        ErrorClass.AUTH_SCOPE,
        ErrorClass.AUTH_USER_ACTION,
        ErrorClass.PERMANENT,
    }
)
_UNSURE: Final = frozenset({ErrorClass.RETRY_LATER, ErrorClass.UNKNOWN_OUTCOME, ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    client_id: str
    client_secret: str = field(repr=False)
    # Scopes that people are asked for besides those that posting needs. They may leave them out.
    more_scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token as a provider issues it, and the answer that it came in."""

    token: str = field(repr=False)
    expires_in: timedelta | None
    body: Mapping[str, Any] = field(repr=False)


def issued_in(body: Mapping[str, Any]) -> Issued | None:
    """Returns the token of an answer; None if it has none."""
    token = body.get("access_token")
    if not isinstance(token, str) or not token or "error" in body:
        return None
    return Issued(token=token, expires_in=life_in(body, "expires_in"), body=body)


def without_answer(failure: NotSent | Ambiguous) -> GrantDelayed:
    """Returns what it means that the request with the code got no answer."""
    return GrantDelayed(message=failure.message, is_unused=isinstance(failure, NotSent))


def not_granted(error: ProviderError, *, redeems: bool = False) -> GrantRefused | GrantDelayed:
    """Returns what an error means for a visit. With `redeems` it answers the request with the code."""
    if error.kind in _DEFINITE:
        return GrantRefused(message=error.message)
    return GrantDelayed(message=error.message, is_unused=redeems and error.kind in _LATER)


def not_refreshed(error: ProviderError, *, is_over: bool) -> RefreshRefused | RefreshDelayed:
    """Returns what an error means for a refresh; `is_over`: it says that the token is."""
    if is_over:
        return RefreshRefused(message=error.message)
    return RefreshDelayed(message=error.message, retry_after=wait_of(error))


async def once_more(read: Callable[[], Awaitable[T | ProviderError]]) -> T | ProviderError:
    """Reads something, a second time if the answer is lost: behind a code, which nobody can present again."""
    seen = await read()
    return await read() if isinstance(seen, ProviderError) and seen.kind in _UNSURE else seen


async def in_time(call: Coroutine[Any, Any, T], *, ends: float, late: T) -> T:
    """Returns what the call does, or `late` at that time of the loop."""
    try:
        async with asyncio.timeout_at(ends):
            return await call
    except TimeoutError:
        return late
