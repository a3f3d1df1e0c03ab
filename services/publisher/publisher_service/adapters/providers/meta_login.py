"""Facebook Login: the tokens of people, the permissions that they have granted, and the pages that they run.

A person's token lives for an hour, or for 60 days once it is exchanged; one that is over cannot be exchanged. The token
of a page is read with it. It has no end of its own, and dies with the password, the role or the application's access.
https://developers.facebook.com/docs/facebook-login/guides/access-tokens/get-long-lived
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.answers import list_in, object_in, object_of, redacted_error, text_in
from publisher_service.adapters.providers.calls import Calls
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.meta_errors import TOO_LONG, meta_error
from publisher_service.adapters.providers.meta_graph import Graph, no_answer, unreadable
from publisher_service.adapters.providers.oauth_application import (
    FORM,
    Application,
    Issued,
    issued_in,
    not_granted,
    without_answer,
)
from publisher_service.domain.connecting import GrantDelayed, GrantRefused
from publisher_service.domain.provider_error import ErrorClass, ProviderError

# Meta does not always say how long a token lives. One that has no end is exchanged all the same.
LIFE: Final = timedelta(days=60)
_MOST_PAGES: Final = 500
# An answer of 64 KiB has room for 50 pages: a name has up to 75 characters, of 6 or 12 bytes each in JSON.
_COUNT: Final = 50
_FIELDS: Final = "id,name,access_token,tasks,instagram_business_account{id,username}"
_POSTING: Final = "CREATE_CONTENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that a person runs. The token is empty for those whose role gives none."""

    id: str
    name: str
    token: str = field(repr=False)
    may_post: bool
    # Of its Instagram account; empty if it has none.
    instagram_id: str
    instagram_name: str


class MetaLogin:
    def __init__(self, name: str, origin: HttpOrigin, limits: Limits, *, version: str, app: Application) -> None:
        self._name = name
        self._calls = Calls(name, origin, timeout=limits.request_timeout)
        self._graph = Graph(name, origin, limits, version=version)
        # Meta shows parameters in the address, and takes them in the body, where no log of requests has them.
        self._path = f"/{version}/oauth/access_token"
        self._app = app

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> Issued | GrantRefused | GrantDelayed:
        """Presents a code, once."""
        given = {"redirect_uri": redirect_uri, "code": code, "code_verifier": verifier}
        answer = await self._calls.post(self._path, {}, self._form(given), content=FORM)
        if not isinstance(answer, Answer):
            return without_answer(answer)
        issued = self._issued(answer, (code, verifier))
        return issued if isinstance(issued, Issued) else not_granted(issued, redeems=True)

    async def prolong(self, token: str) -> Issued | ProviderError:
        """Exchanges a token for one that lives long; its life is always said."""
        given = {"grant_type": "fb_exchange_token", "fb_exchange_token": token}
        answer = await self._calls.post(self._path, {}, self._form(given), content=FORM)
        if not isinstance(answer, Answer):
            return no_answer(answer.message)
        issued = self._issued(answer, (token,))
        return replace(issued, expires_in=issued.expires_in or LIFE) if isinstance(issued, Issued) else issued

    async def granted(self, token: str) -> tuple[str, ...] | ProviderError:
        """Returns the permissions that the person has granted."""
        entries = await self._listed("me/permissions", token, {"limit": "100"})
        if isinstance(entries, ProviderError):
            return entries
        return tuple(
            text_in(entry, "permission")
            for entry in entries
            if isinstance(entry, dict) and entry.get("status") == "granted"
        )

    async def pages(self, token: str) -> Sequence[Page] | ProviderError:
        """Returns the pages that the person runs; an error if there are more than 500."""
        entries = await self._listed("me/accounts", token, {"fields": _FIELDS, "limit": str(_COUNT)})
        if isinstance(entries, ProviderError):
            return _too_many(entries) if entries.reason == TOO_LONG else entries
        pages = [_page(entry) for entry in entries if isinstance(entry, dict)]
        # A list that changes while it is read may show a page twice.
        return list({page.id: page for page in pages if page.id}.values())

    async def _listed(self, path: str, token: str, query: Mapping[str, str]) -> Sequence[object] | ProviderError:
        return await self._graph.listed(path, token, query, most_pages=_MOST_PAGES // _COUNT)

    def _form(self, given: Mapping[str, str]) -> bytes:
        app = {"client_id": self._app.client_id, "client_secret": self._app.client_secret}
        return urlencode(app | {name: text for name, text in given.items() if text}).encode()

    def _issued(self, answer: Answer, secrets: Sequence[str]) -> Issued | ProviderError:
        if answer.status != 200:
            return redacted_error(answer, meta_error, (self._app.client_secret, *secrets))
        return issued_in(object_of(answer.body)) or unreadable(self._name)


def _page(entry: Mapping[str, object]) -> Page:
    token, instagram = entry.get("access_token"), object_in(entry, "instagram_business_account")
    return Page(
        id=text_in(entry, "id"),
        name=text_in(entry, "name"),
        token=token if isinstance(token, str) else "",
        may_post=_POSTING in (list_in(entry, "tasks") or ()),
        instagram_id=text_in(instagram, "id"),
        instagram_name=text_in(instagram, "username"),
    )


def _too_many(error: ProviderError) -> ProviderError:
    """Returns the error of a list that will be as long the next time."""
    message = f"the person has granted more than {_MOST_PAGES} pages; choose fewer at Facebook"
    return replace(error, kind=ErrorClass.PERMANENT, message=message)
