"""Tokens of Facebook pages, and of Instagram accounts that belong to pages, by Facebook Login."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.meta_errors import is_token_over
from publisher_service.adapters.providers.meta_login import MetaLogin, Page
from publisher_service.adapters.providers.oauth_application import (
    Application,
    Issued,
    in_time,
    not_granted,
    not_refreshed,
    once_more,
)
from publisher_service.domain.connecting import Candidate, Grant, GrantAnswer, GrantDelayed
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.provider_error import ProviderError
from publisher_service.domain.refresh import (
    RefreshAnswer,
    RefreshDelayed,
    Refreshed,
    RefreshRefused,
    missing_scopes,
)

DIALOG: Final = "https://www.facebook.com"
PAGE_SCOPES: Final = ("pages_show_list", "pages_read_engagement", "pages_manage_posts")
INSTAGRAM_SCOPES: Final = (
    "instagram_basic",
    "instagram_content_publish",
    "pages_show_list",
    "pages_read_engagement",
)
AHEAD: Final = timedelta(days=7)
"""How long ahead of its end a token of 60 days is refreshed."""
_LATE: Final = "Facebook took too long to answer"

Pick = Callable[[Page], tuple[str, str]]
"""Returns the id and the name of the account that a page stands for; an empty id if it is none."""


def as_page(page: Page) -> tuple[str, str]:
    return page.id, page.name


def as_instagram(page: Page) -> tuple[str, str]:
    return page.instagram_id, page.instagram_name


class FacebookLoginTokens:
    """Exchanges the token of the person, and reads the page's with it. Both may be repeated: nothing is used up."""

    is_rotating: Final = False
    refresh_ahead: Final = AHEAD

    def __init__(self, login: MetaLogin, limits: Limits, pick: Pick) -> None:
        self._login = login
        self._timeout = limits.request_timeout.total_seconds()
        self._pick = pick

    def can_refresh(self, credentials: Credentials) -> bool:
        return bool(credentials.user_token)

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        ends = asyncio.get_running_loop().time() + self._timeout
        call = self._refresh(external_account_id, credentials.user_token)
        return await in_time(call, ends=ends, late=RefreshDelayed(message=_LATE))

    async def _refresh(self, external_account_id: str, user_token: str) -> RefreshAnswer:
        user = await self._login.prolong(user_token)
        if isinstance(user, ProviderError):
            return not_refreshed(user, is_over=is_token_over(user))
        pages = await self._login.pages(user.token)
        if isinstance(pages, ProviderError):
            return not_refreshed(pages, is_over=is_token_over(pages))
        token = next((page.token for page in pages if self._pick(page)[0] == external_account_id), "")
        if not token:
            return RefreshRefused(message="the person who has connected the account has no access to it any more")
        credentials = Credentials(access_token=token, user_token=user.token)
        # The page's own token has no end, but without the person's nobody could get the next one.
        return Refreshed(credentials=credentials, expires_in=user.expires_in)


class FacebookLoginOAuth:
    """Visits to Facebook, where a person chooses pages."""

    def __init__(
        self,
        login: MetaLogin,
        limits: Limits,
        pick: Pick,
        *,
        app: Application,
        version: str,
        scopes: tuple[str, ...],
        dialog_url: str = DIALOG,
    ) -> None:
        self.scopes = scopes
        self._login = login
        self._timeout = limits.request_timeout.total_seconds()
        self._pick = pick
        self._app = app
        self._dialog = f"{dialog_url.rstrip('/')}/{version}/dialog/oauth"

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        query = {
            "response_type": "code",
            "client_id": self._app.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": ",".join((*self.scopes, *self._app.more_scopes)),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            # Without this, nobody is asked a second time for what they have left out once.
            "auth_type": "rerequest",
        }
        return f"{self._dialog}?{urlencode(query)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        ends = asyncio.get_running_loop().time() + self._timeout
        issued = await self._login.redeem(code, verifier, redirect_uri)
        if not isinstance(issued, Issued):
            return issued
        return await in_time(self._grant(issued.token), ends=ends, late=GrantDelayed(message=_LATE))

    async def _grant(self, token: str) -> GrantAnswer:
        user = await once_more(lambda: self._login.prolong(token))
        if isinstance(user, ProviderError):
            return not_granted(user)
        scopes = await once_more(lambda: self._login.granted(user.token))
        if isinstance(scopes, ProviderError):
            return not_granted(scopes)
        if missing_scopes(self.scopes, scopes):
            # The list of pages may be one of the things that were left out.
            return Grant(candidates=(), scopes=scopes)
        pages = await once_more(lambda: self._login.pages(user.token))
        if isinstance(pages, ProviderError):
            return not_granted(pages)
        candidates = (self._candidate(page, user) for page in pages if page.may_post and page.token)
        return Grant(candidates=[each for each in candidates if each is not None], scopes=scopes)

    def _candidate(self, page: Page, user: Issued) -> Candidate | None:
        identifier, name = self._pick(page)
        if not identifier:
            return None
        return Candidate(
            external_account_id=identifier,
            name=name,
            credentials=Credentials(access_token=page.token, user_token=user.token),
            expires_in=user.expires_in,
        )
