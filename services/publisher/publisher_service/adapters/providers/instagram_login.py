"""Instagram Login: tokens of Instagram accounts that need no page.

A token is exchanged for one of 60 days, which is refreshed for 60 more while it lives, from its second day on.
https://developers.facebook.com/docs/instagram-platform/instagram-api-with-instagram-login/business-login
Only the address takes the parameters of those two requests, so no address is part of a message.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.answers import list_in, object_of, redacted_error, text_in
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.meta_errors import is_token_over, meta_error
from publisher_service.adapters.providers.meta_graph import Graph, no_answer, unreadable
from publisher_service.adapters.providers.meta_login import LIFE
from publisher_service.adapters.providers.meta_tokens import AHEAD
from publisher_service.adapters.providers.oauth_application import (
    FORM,
    Application,
    Issued,
    in_time,
    issued_in,
    not_granted,
    not_refreshed,
    once_more,
    without_answer,
)
from publisher_service.domain.connecting import Candidate, Grant, GrantAnswer, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.provider_error import ErrorClass, ProviderError
from publisher_service.domain.refresh import RefreshAnswer, Refreshed, missing_scopes

OWN_DIALOG: Final = "https://www.instagram.com"
OWN_SCOPES: Final = ("instagram_business_basic", "instagram_business_content_publish")
_LATE: Final = "Instagram took too long to answer"


class Login(StrEnum):
    """The login by which people connect an Instagram account."""

    FACEBOOK = "FACEBOOK"
    INSTAGRAM = "INSTAGRAM"


def login_at(url: str) -> Login:
    """Returns the login whose tokens the API at this address takes."""
    host = urlsplit(url).hostname or ""
    return Login.INSTAGRAM if host == "instagram.com" or host.endswith(".instagram.com") else Login.FACEBOOK


class InstagramLoginTokens:
    """Refreshes a token with itself; that needs no application."""

    is_rotating: Final = False
    refresh_ahead: Final = AHEAD

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self._calls = Calls("Instagram", origin, timeout=limits.request_timeout)

    def can_refresh(self, credentials: Credentials) -> bool:
        # A token of a person at Facebook is of the other login.
        return bool(credentials.access_token) and not credentials.user_token

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        token = credentials.access_token
        query = {"grant_type": "ig_refresh_token", "access_token": token}
        issued = await _asked(self._calls, "/refresh_access_token", query, (token,))
        if isinstance(issued, Issued):
            return Refreshed(credentials=Credentials(access_token=issued.token), expires_in=issued.expires_in)
        # One that is too young is refused as well, and is not over.
        return not_refreshed(issued, is_over=is_token_over(issued))


class InstagramLoginOAuth:
    """Visits to Instagram, which takes no proof key (RFC 7636)."""

    scopes: Final = OWN_SCOPES

    def __init__(
        self,
        origin: HttpOrigin,
        sign_in: HttpOrigin,
        limits: Limits,
        *,
        app: Application,
        version: str,
        dialog_url: str = OWN_DIALOG,
    ) -> None:
        """`sign_in` is the server that exchanges codes, api.instagram.com."""
        self._calls = Calls("Instagram", origin, timeout=limits.request_timeout)
        self._sign_in = Calls("Instagram", sign_in, timeout=limits.request_timeout)
        self._graph = Graph("Instagram", origin, limits, version=version)
        self._timeout = limits.request_timeout.total_seconds()
        self._app = app
        self._dialog = f"{dialog_url.rstrip('/')}/oauth/authorize"

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        query = {
            "response_type": "code",
            "client_id": self._app.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": ",".join((*self.scopes, *self._app.more_scopes)),
        }
        return f"{self._dialog}?{urlencode(query)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        ends = asyncio.get_running_loop().time() + self._timeout
        issued = await self._redeem(code, redirect_uri)
        if not isinstance(issued, Issued):
            return issued
        return await in_time(self._grant(issued), ends=ends, late=GrantDelayed(message=_LATE))

    async def _redeem(self, code: str, redirect_uri: str) -> Issued | GrantRefused | GrantDelayed:
        secret = self._app.client_secret
        form = {
            "client_id": self._app.client_id,
            "client_secret": secret,
            "grant_type": "authorization_code",
            "redirect_uri": redirect_uri,
            "code": code,
        }
        answer = await self._sign_in.post("/oauth/access_token", {}, urlencode(form).encode(), content=FORM)
        if not isinstance(answer, Answer):
            return without_answer(answer)
        if answer.status != 200:
            return not_granted(redacted_error(answer, _login_error, (secret, code)), redeems=True)
        return issued_in(_login_of(object_of(answer.body))) or not_granted(unreadable("Instagram"))

    async def _grant(self, issued: Issued) -> GrantAnswer:
        scopes = _permissions(issued.body)
        if missing_scopes(self.scopes, scopes):
            return Grant(candidates=(), scopes=scopes)
        long = await once_more(lambda: self._prolong(issued.token))
        if isinstance(long, ProviderError):
            return not_granted(long)
        account = await once_more(lambda: self._account(long.token))
        if isinstance(account, ProviderError):
            return not_granted(account)
        candidate = Candidate(
            external_account_id=text_in(account, "user_id"),
            name=text_in(account, "username"),
            credentials=Credentials(access_token=long.token),
            expires_in=long.expires_in,
        )
        return Grant(candidates=(candidate,), scopes=scopes)

    async def _prolong(self, token: str) -> Issued | ProviderError:
        secret = self._app.client_secret
        query = {"grant_type": "ig_exchange_token", "client_secret": secret, "access_token": token}
        return await _asked(self._calls, "/access_token", query, (secret, token))

    async def _account(self, token: str) -> Mapping[str, Any] | ProviderError:
        """Reads whose token it is. The id in the answer to the code is another one, of the application alone."""
        seen = await self._graph.read("me", token, {"fields": "user_id,username"})
        if isinstance(seen, ProviderError):
            return seen
        return seen if text_in(seen, "user_id") else unreadable("Instagram")


async def _asked(calls: Calls, path: str, query: Mapping[str, str], secrets: Sequence[str]) -> Issued | ProviderError:
    """Asks for a token by an address that holds secrets: a failure names none of its parts."""
    answer = await calls.read(f"{path}?{urlencode(query)}", {})
    if isinstance(answer, Unanswered):
        return no_answer(answer.message)
    if answer.status != 200:
        return redacted_error(answer, meta_error, secrets)
    issued = issued_in(object_of(answer.body))
    if issued is None:
        return unreadable("Instagram")
    return replace(issued, expires_in=issued.expires_in or LIFE)


def _login_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what an answer to a code says: it stands alone, or in a list of one."""
    match list_in(body, "data"):
        case [dict() as login]:
            return login
        case _:
            return body


def _permissions(login: Mapping[str, Any]) -> tuple[str, ...]:
    said = login.get("permissions")
    if isinstance(said, list):
        return tuple(each for each in said if isinstance(each, str))
    return tuple(filter(None, re.split(r"[\s,]+", said))) if isinstance(said, str) else ()


def _login_error(answer: Answer) -> ProviderError:
    """Returns what a refusal of a code means, which has a form of its own."""
    body = object_of(answer.body)
    message = text_in(body, "error_message")
    if not message:
        return meta_error(answer)
    kind = ErrorClass.PERMANENT if answer.status in (400, 401, 403) else ErrorClass.UNKNOWN_OUTCOME
    if answer.status == 429:
        kind = ErrorClass.RATE_APP
    return ProviderError(kind=kind, reason=text_in(body, "error_type")[:64] or "LOGIN", message=message)
