"""Tokens of LinkedIn, for members and for the pages that they administer.

An access token lives for 60 days. Only applications of approved partners get a refresh token; its life is a year from
the consent, and no refresh adds to it. https://learn.microsoft.com/linkedin/shared/authentication/authorization-code-flow
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.answers import life_in, object_of, redacted_error, text_in
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.linkedin_api import LinkedInApi, next_page
from publisher_service.adapters.providers.linkedin_errors import INVALID_GRANT, linkedin_error
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
from publisher_service.domain.outcome import Ambiguous, NotSent
from publisher_service.domain.provider_error import ErrorClass, ProviderError
from publisher_service.domain.refresh import RefreshAnswer, RefreshDelayed, Refreshed, missing_scopes

MEMBER_SCOPES: Final = ("openid", "profile", "w_member_social")
PAGE_SCOPES: Final = ("w_organization_social", "r_organization_social", "rw_organization_admin")
_PATH: Final = "/oauth/v2/accessToken"
_LATE: Final = "LinkedIn took too long to answer"
_UNREADABLE: Final = "LinkedIn gave an answer that cannot be read"
_PAGE: Final = re.compile(r"urn:li:organization:([0-9]{1,20})")
_COUNT: Final = 50
_MOST_PAGES: Final = 500
# A page is described at length, and an answer has 64 KiB.
_NAMED_AT_ONCE: Final = 10

Accounts = Sequence[tuple[str, str]]
"""Ids and names."""
FindAccounts = Callable[[LinkedInApi, str], Awaitable[Accounts | ProviderError]]
"""Returns the accounts for which a token may post."""


class LinkedInTokens:
    # The same refresh token comes back with each answer.
    is_rotating: Final = False
    refresh_ahead: Final = timedelta(0)

    def __init__(self, sign_in: HttpOrigin, limits: Limits, app: Application) -> None:
        """`sign_in` is the server that issues tokens, www.linkedin.com."""
        self._calls = Calls("LinkedIn", sign_in, timeout=limits.request_timeout)
        self._app = app

    def can_refresh(self, credentials: Credentials) -> bool:
        return bool(credentials.refresh_token)

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        token = credentials.refresh_token
        form = {"grant_type": "refresh_token", "refresh_token": token}
        answer = await _asked(self._calls, self._app, form)
        if not isinstance(answer, Answer):
            return RefreshDelayed(message=answer.message)
        if answer.status != 200:
            error = redacted_error(answer, linkedin_error, (self._app.client_secret, token))
            return not_refreshed(error, is_over=error.reason == INVALID_GRANT)
        issued = issued_in(object_of(answer.body))
        if issued is None:
            return RefreshDelayed(message=_UNREADABLE)
        return Refreshed(
            credentials=_credentials(issued),
            expires_in=issued.expires_in,
            refresh_expires_in=life_in(issued.body, "refresh_token_expires_in"),
        )


class LinkedInOAuth:
    """Visits to LinkedIn. It refuses the proof key (RFC 7636) of an application that has a secret."""

    def __init__(
        self,
        api: LinkedInApi,
        sign_in: HttpOrigin,
        limits: Limits,
        *,
        app: Application,
        scopes: tuple[str, ...],
        accounts: FindAccounts,
    ) -> None:
        self.scopes = scopes
        self._api = api
        self._sign_in = sign_in
        self._calls = Calls("LinkedIn", sign_in, timeout=limits.request_timeout)
        self._timeout = limits.request_timeout.total_seconds()
        self._app = app
        self._accounts = accounts

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        query = {
            "response_type": "code",
            "client_id": self._app.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": " ".join(self._asked_scopes),
        }
        return f"{self._sign_in.url}/oauth/v2/authorization?{urlencode(query)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        ends = asyncio.get_running_loop().time() + self._timeout
        issued = await self._redeem(code, redirect_uri)
        if not isinstance(issued, Issued):
            return issued
        return await in_time(self._grant(issued), ends=ends, late=GrantDelayed(message=_LATE))

    @property
    def _asked_scopes(self) -> tuple[str, ...]:
        return (*self.scopes, *self._app.more_scopes)

    async def _redeem(self, code: str, redirect_uri: str) -> Issued | GrantRefused | GrantDelayed:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        answer = await _asked(self._calls, self._app, form)
        if not isinstance(answer, Answer):
            return without_answer(answer)
        if answer.status != 200:
            return not_granted(redacted_error(answer, linkedin_error, (self._app.client_secret, code)), redeems=True)
        return issued_in(object_of(answer.body)) or GrantDelayed(message=_UNREADABLE)

    async def _grant(self, issued: Issued) -> GrantAnswer:
        said = issued.body.get("scope")
        # Nobody can leave a scope out, so what is not said is what was asked for.
        scopes = tuple(filter(None, re.split(r"[\s,]+", said))) if isinstance(said, str) else self._asked_scopes
        if missing_scopes(self.scopes, scopes):
            return Grant(candidates=(), scopes=scopes)
        accounts = await once_more(lambda: self._accounts(self._api, issued.token))
        if isinstance(accounts, ProviderError):
            return not_granted(accounts)
        refresh_expires_in = life_in(issued.body, "refresh_token_expires_in")
        candidates = [
            Candidate(
                external_account_id=identifier,
                name=name,
                credentials=_credentials(issued),
                expires_in=issued.expires_in,
                refresh_expires_in=refresh_expires_in,
            )
            for identifier, name in accounts
        ]
        return Grant(candidates=candidates, scopes=scopes)


async def member_of(api: LinkedInApi, token: str) -> Accounts | ProviderError:
    seen = await _read(api, "/v2/userinfo", token)
    if isinstance(seen, ProviderError):
        return seen
    member = text_in(seen, "sub")
    return [(member, text_in(seen, "name"))] if member else _unreadable()


async def pages_of(api: LinkedInApi, token: str) -> Accounts | ProviderError:
    """Returns the pages that the member administers; an error if there are more than 500."""
    found: dict[str, None] = {}
    for start in range(0, _MOST_PAGES, _COUNT):
        query = f"q=roleAssignee&role=ADMINISTRATOR&state=APPROVED&start={start}&count={_COUNT}"
        seen = await _read(api, f"/rest/organizationAcls?{query}", token)
        if isinstance(seen, ProviderError):
            return seen
        elements = seen.get("elements")
        if not isinstance(elements, list):
            return _unreadable()
        found |= dict.fromkeys(filter(None, map(_page, elements)))
        goes_on = next_page(seen)
        if goes_on is False or (goes_on is None and len(elements) < _COUNT):
            names = await _names(api, token, list(found))
            return [(page, names.get(page, f"LinkedIn page {page}")) for page in found]
    message = f"the member administers more than {_MOST_PAGES} pages"
    return ProviderError(kind=ErrorClass.PERMANENT, reason="LIST_TOO_LONG", message=message)


async def _names(api: LinkedInApi, token: str, pages: Sequence[str]) -> Mapping[str, str]:
    """Returns the names of pages, as far as they can be read: they are for people alone."""
    names: dict[str, str] = {}
    for start in range(0, len(pages), _NAMED_AT_ONCE):
        ids = ",".join(pages[start : start + _NAMED_AT_ONCE])
        seen = await _read(api, f"/rest/organizations?ids=List({ids})", token)
        results = seen.get("results") if isinstance(seen, dict) else None
        for page, shown in results.items() if isinstance(results, dict) else ():
            if isinstance(shown, dict) and (name := text_in(shown, "localizedName")):
                names[page] = name
    return names


def _page(element: object) -> str:
    """Returns the number of the page that an entry is about; empty if it is not one that is administered now."""
    match element:
        case {"organization": str(urn), "role": "ADMINISTRATOR", "state": "APPROVED"}:
            page = _PAGE.fullmatch(urn)
            return page[1] if page else ""
        case _:
            return ""


async def _read(api: LinkedInApi, path: str, token: str) -> dict[str, Any] | ProviderError:
    answer = await api.read(path, token)
    if isinstance(answer, Unanswered):
        return ProviderError(kind=ErrorClass.RETRY_LATER, reason="NO_ANSWER", message=answer.message)
    if answer.status != 200:
        return redacted_error(answer, linkedin_error, (token,))
    return object_of(answer.body) or _unreadable()


async def _asked(calls: Calls, app: Application, form: Mapping[str, str]) -> Answer | NotSent | Ambiguous:
    whole = {**form, "client_id": app.client_id, "client_secret": app.client_secret}
    return await calls.post(_PATH, {}, urlencode(whole).encode(), content=FORM)


def _credentials(issued: Issued) -> Credentials:
    refresh = issued.body.get("refresh_token")
    return Credentials(access_token=issued.token, refresh_token=refresh if isinstance(refresh, str) else "")


def _unreadable() -> ProviderError:
    return ProviderError(kind=ErrorClass.UNKNOWN_OUTCOME, reason="UNREADABLE_ANSWER", message=_UNREADABLE)
