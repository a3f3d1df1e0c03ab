"""The contracts of providers whose tokens end, that grant access to visitors, or whose accounts have settings.

An adapter has what it supports as attributes: `token_source`, `oauth`, `check_settings`. Only `Provider` calls them.
One that reaches the accounts of all organizations with one key, so that nothing proves whose an account is, has
`unknown_account`: what it says of an account that it does not know, or that is another organization's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final, Protocol, TypeVar

from publisher_service.adapters.providers.texts import is_name, storable, without_secrets
from publisher_service.domain.connecting import Candidate, Grant, GrantAnswer, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshAnswer, RefreshDelayed, Refreshed, RefreshRefused

_LONGEST_TOKEN: Final = 8192
_LONGEST_LIFE: Final = timedelta(days=3650)
_LONGEST_WAIT: Final = timedelta(hours=24)
_LONGEST_TEXT: Final = 500
_LONGEST_NAME: Final = 200
_MOST_CANDIDATES: Final = 500
_MOST_SCOPES: Final = 100
_TOKEN: Final = re.compile(r"[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*")


class TokenSource(Protocol):
    """Gets the next access token of an account."""

    @property
    def is_rotating(self) -> bool:
        """Returns whether a refresh token is good for one use."""
        ...

    @property
    def refresh_ahead(self) -> timedelta:
        """The least time ahead of its end at which a token is refreshed; zero leaves it to Publisher."""
        ...

    def can_refresh(self, credentials: Credentials) -> bool:
        """Returns whether these have what a refresh needs."""
        ...

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        """Makes one request and never repeats it. Only a definite no is RefreshRefused."""
        ...


class OAuth(Protocol):
    """Grants access to a person who visits the provider (RFC 6749, with PKCE by RFC 7636)."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that posting needs."""
        ...

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        """Returns the page to visit. `challenge` is that of S256."""
        ...

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        """Presents the code once. Further requests, such as for the list of pages, may follow."""
        ...


class SettingsCheck(Protocol):
    def __call__(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the settings as they are to be stored. Raises InvalidField, which names `settings.<name>`."""
        ...


class UnsoundAnswer(Exception):
    """An adapter broke its contract."""


Answer = TypeVar("Answer", RefreshRefused, RefreshDelayed, GrantRefused, GrantDelayed)


def sound_refresh(answer: object, known: Credentials) -> RefreshAnswer:
    """Returns the answer as it can be stored; raises UnsoundAnswer. What the provider leaves out stays as it was."""
    match answer:
        case Refreshed():
            got = _sound_credentials(answer.credentials)
            whole = replace(
                got,
                refresh_token=got.refresh_token or known.refresh_token,
                user_token=got.user_token or known.user_token,
            )
            return replace(
                answer,
                credentials=whole,
                expires_in=_life(answer.expires_in),
                refresh_expires_in=_life(answer.refresh_expires_in),
            )
        case RefreshRefused():
            return _storable(answer, known.secrets)
        case RefreshDelayed():
            wait = answer.retry_after
            bounded = None if wait is None else min(max(wait, timedelta(0)), _LONGEST_WAIT)
            return _storable(replace(answer, retry_after=bounded), known.secrets)
        case _:
            raise UnsoundAnswer(f"not an answer to a refresh: {type(answer).__name__}")


def sound_grant(answer: object, secrets: Iterable[str], channels: Iterable[str]) -> GrantAnswer:
    """Returns the answer as it can be stored; raises UnsoundAnswer. Channels that are not offered here are left out."""
    match answer:
        case Grant():
            offered = set(channels)
            kept = tuple(_sound_candidate(each, offered) for each in answer.candidates[:_MOST_CANDIDATES])
            scopes = tuple(storable(str(scope))[:_LONGEST_NAME] for scope in answer.scopes[:_MOST_SCOPES])
            return Grant(candidates=kept, scopes=scopes)
        case GrantRefused():
            return _storable(answer, secrets)
        case GrantDelayed():
            return _storable(answer, secrets)
        case _:
            raise UnsoundAnswer(f"not a grant: {type(answer).__name__}")


def is_account_name(name: str) -> bool:
    """Returns whether the name of an account can be part of a request."""
    return is_name(name) and len(name) <= _LONGEST_NAME and name.isprintable() and name.strip(".") != ""


def _sound_candidate(candidate: Candidate, offered: set[str]) -> Candidate:
    if not is_account_name(candidate.external_account_id):
        raise UnsoundAnswer("an account has no name that can be kept")
    credentials = _sound_credentials(candidate.credentials)
    if without_secrets(candidate.external_account_id, credentials.secrets) != candidate.external_account_id:
        raise UnsoundAnswer("the name of an account repeats a secret")
    return replace(
        candidate,
        name=without_secrets(storable(candidate.name), credentials.secrets)[:_LONGEST_NAME],
        channels=tuple(channel for channel in candidate.channels if channel in offered),
        credentials=credentials,
        expires_in=_life(candidate.expires_in),
        refresh_expires_in=_life(candidate.refresh_expires_in),
    )


def _sound_credentials(credentials: object) -> Credentials:
    if not isinstance(credentials, Credentials):
        raise UnsoundAnswer("no credentials")
    secrets = credentials.secrets
    if not credentials.access_token or not all(_TOKEN.fullmatch(each) for each in secrets):
        raise UnsoundAnswer("a token that no request can carry")
    if max(map(len, secrets)) > _LONGEST_TOKEN:
        raise UnsoundAnswer("a token that is too long")
    return credentials


def _life(duration: timedelta | None) -> timedelta | None:
    return None if duration is None else min(max(duration, timedelta(0)), _LONGEST_LIFE)


def _storable(answer: Answer, secrets: Iterable[str]) -> Answer:
    return replace(answer, message=without_secrets(storable(answer.message), secrets)[:_LONGEST_TEXT])
