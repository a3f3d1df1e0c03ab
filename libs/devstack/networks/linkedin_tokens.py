"""The tokens of the fake of LinkedIn, and the ways to get them: a visit by a person, or a refresh token.

A refresh token is given to applications of partners alone. What it gets lives no longer than the token itself, whose
life is that of the first consent. LinkedIn takes no `code_verifier` from an application that has a secret.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from devstack.networks.network import Network, operation
from servicekit.clock import Clock

VERSION = "202610"
CLIENT_ID, CLIENT_SECRET = "app", "app-secret"
"""The application that may exchange codes and refresh tokens."""
DAY = timedelta(days=1)
_ACCESS_SECONDS, _REFRESH_DAYS = 5_184_000, 365
_CODE_LIFE = timedelta(minutes=30)
_IDS = re.compile(r"List\(([0-9,]+)\)")
_PAGE_SCOPE = "r_organization_social"


@dataclass
class Grant:
    """A token: whose it is, and until when it is good."""

    owner: str
    expires: datetime
    # The pages that a member's token may post for, too.
    pages: tuple[str, ...] = ()
    # Empty: all.
    scopes: tuple[str, ...] = ()

    @property
    def is_page(self) -> bool:
        return self.owner.startswith("urn:li:organization:")

    @property
    def reads_posts(self) -> bool:
        return self.is_page or _PAGE_SCOPE in self.scopes

    def acting_as(self, author: object) -> "Grant":
        """Returns the grant of the page that this one posts for, if the author is one."""
        return replace(self, owner=str(author)) if author in self.pages else self


@dataclass(frozen=True)
class Consent:
    """The consent of a person, behind a code that is good once."""

    member: str
    redirect_uri: str
    scopes: tuple[str, ...]
    expires: datetime


class Refusal(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str, message: str, **more: object) -> None:
        super().__init__(code)
        self.status = status
        self.body = {"status": status, "code": code, "message": message, **more}


class LinkedInTokens(Network):
    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        self.grants: dict[str, Grant] = {}
        self.refresh_tokens: dict[str, Grant] = {}
        self.versions = {VERSION}
        # Applications that are approved as partners get refresh tokens, and may comment by the versioned resource.
        self.is_partner = False
        # Who visits; and the pages (id, name) that members administer.
        self.visitor = "urn:li:person:ann"
        self.pages: dict[str, list[tuple[int, str]]] = {}
        # Who has used up the day: `APPLICATION`, or an author.
        self.throttled: dict[str, datetime] = {}
        self._codes: dict[str, Consent] = {}
        self._made = 0

    def token_routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/oauth/v2/authorization", self.authorize),
            web.post("/oauth/v2/accessToken", self.exchange),
            web.get("/v2/userinfo", self.userinfo),
            web.get("/rest/organizationAcls", self.list_roles),
            web.get("/rest/organizations", self.list_organizations),
        )

    def grant(self, token: str, owner: str, *, seconds: float = _ACCESS_SECONDS) -> None:
        """Makes a token of a member or of a page."""
        self.grants[token] = Grant(owner, self.clock.now() + timedelta(seconds=seconds))

    def grant_refresh(self, token: str, owner: str) -> None:
        """Makes a refresh token. Its life is that of the first consent: using it adds nothing."""
        self.refresh_tokens[token] = Grant(owner, self.clock.now() + timedelta(days=_REFRESH_DAYS))

    def revoke(self, owner: str) -> None:
        """Ends all tokens of a member, or of a page."""
        for tokens in (self.grants, self.refresh_tokens):
            for token in [each for each, grant in tokens.items() if grant.owner == owner]:
                del tokens[token]

    def throttle(self, who: str = "APPLICATION") -> None:
        """Has `who`, or the whole application, used up the calls of this day."""
        now = self.clock.now()
        self.throttled[who] = now.replace(hour=0, minute=0, second=0, microsecond=0) + DAY

    def account_of(self, request: web.Request) -> str:
        grant = self.grants.get(token_of(request))
        return grant.owner if grant else ""

    @operation("authorize")
    async def authorize(self, request: web.Request) -> web.Response:
        """Lets the visitor agree, and sends the browser back with a code."""
        query = request.query
        if query.get("client_id") != CLIENT_ID or query.get("response_type") != "code":
            return web.Response(status=400, text="Invalid client_id or response_type")
        if not query.get("state"):
            self.problem("a visit without a state")
        code = f"code-{self.number()}"
        scopes = tuple(query.get("scope", "").split())
        self._codes[code] = Consent(self.visitor, query["redirect_uri"], scopes, self.clock.now() + _CODE_LIFE)
        back = urlencode({"code": code, "state": query.get("state", "")})
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{back}"})

    @operation("exchange")
    async def exchange(self, request: web.Request) -> web.Response:
        """Exchanges a code, or a refresh token if the application is a partner's."""
        form = {name: str(text) for name, text in (await request.post()).items()}
        if request.query:
            self.problem("a parameter of the token endpoint was in an address")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET) or "code_verifier" in form:
            return _failure(401, "invalid_client", "Client authentication failed")
        match form.get("grant_type"):
            case "authorization_code":
                return self._redeem(form)
            case "refresh_token":
                return self._refresh(form.get("refresh_token", ""))
            case _:
                return _failure(400, "invalid_request", 'A required parameter "grant_type" is missing')

    def _redeem(self, form: Mapping[str, str]) -> web.Response:
        consent, now = self._codes.pop(form.get("code", ""), None), self.clock.now()
        if consent is None or consent.expires <= now or consent.redirect_uri != form.get("redirect_uri"):
            said = "appid/redirect uri/code verifier does not match authorization code. Or authorization code expired."
            return _failure(400, "invalid_request", f"Unable to retrieve access token: {said}")
        grant = Grant(consent.member, now + timedelta(days=_REFRESH_DAYS), scopes=consent.scopes)
        if _PAGE_SCOPE in consent.scopes:
            grant.pages = tuple(f"urn:li:organization:{number}" for number, _ in self.pages.get(consent.member, []))
        answer = self._issued(grant, timedelta(seconds=_ACCESS_SECONDS))
        answer["scope"] = ",".join(consent.scopes)
        if self.is_partner:
            token = f"refresh-{self.number()}"
            self.refresh_tokens[token] = grant
            answer |= {"refresh_token": token, "refresh_token_expires_in": _REFRESH_DAYS * 86_400}
        return web.json_response(answer)

    def _refresh(self, token: str) -> web.Response:
        grant, now = self.refresh_tokens.get(token), self.clock.now()
        if not self.is_partner or grant is None or grant.expires <= now:
            said = "The provided authorization grant or refresh token is invalid, expired or revoked."
            return _failure(400, "invalid_grant", said)
        left = grant.expires - now
        answer = self._issued(grant, min(left, timedelta(seconds=_ACCESS_SECONDS)))
        refresh = {"refresh_token": token, "refresh_token_expires_in": int(left.total_seconds())}
        return web.json_response(answer | refresh)

    def _issued(self, grant: Grant, life: timedelta) -> dict[str, Any]:
        token = f"access-{self.number()}"
        self.grants[token] = replace(grant, expires=self.clock.now() + life)
        return {"access_token": token, "expires_in": int(life.total_seconds()), "token_type": "Bearer"}

    @operation("userinfo")
    async def userinfo(self, request: web.Request) -> web.Response:
        try:
            grant = self.admitted(request, versioned=False)
        except Refusal as refusal:
            return answer_of(refusal)
        return web.json_response({"sub": grant.owner.rpartition(":")[2], "name": "Ann Example"})

    @operation("roles")
    async def list_roles(self, request: web.Request) -> web.Response:
        """Lists the pages that the member administers, without their names."""
        try:
            grant = self._organizer(request)
        except Refusal as refusal:
            return answer_of(refusal)
        if (request.query.get("q"), request.query.get("role")) != ("roleAssignee", "ADMINISTRATOR"):
            return answer_of(Refusal(400, "ILLEGAL_ARGUMENT", "Unsupported finder"))
        elements = [
            {
                "role": "ADMINISTRATOR",
                "state": "APPROVED",
                "roleAssignee": grant.owner,
                "organization": f"urn:li:organization:{number}",
            }
            for number, _ in self.pages.get(grant.owner, [])
        ]
        return page_of(request, "/rest/organizationAcls", elements)

    @operation("organizations")
    async def list_organizations(self, request: web.Request) -> web.Response:
        """Shows several pages at once; those that the member does not administer are errors."""
        try:
            grant = self._organizer(request)
        except Refusal as refusal:
            return answer_of(refusal)
        asked = _IDS.fullmatch(request.query.get("ids", ""))
        if asked is None:
            return answer_of(Refusal(400, "ILLEGAL_ARGUMENT", "Invalid query parameters passed to request"))
        names = dict(self.pages.get(grant.owner, []))
        numbers = [int(each) for each in asked[1].split(",")]
        results = {str(each): {"id": each, "localizedName": names[each]} for each in numbers if each in names}
        errors = {str(each): {"status": 403, "message": "no permission"} for each in numbers if each not in names}
        return web.json_response({"results": results, "errors": errors, "statuses": dict.fromkeys(results, 200)})

    def _organizer(self, request: web.Request) -> Grant:
        grant = self.admitted(request)
        if grant.scopes and "rw_organization_admin" not in grant.scopes:
            raise Refusal(
                403, "ACCESS_DENIED", "Not enough permissions to access: organizationAcls.FINDER-roleAssignee"
            )
        return grant

    def admitted(
        self, request: web.Request, *, versioned: bool = True, writes: bool = False, reads_posts: bool = False
    ) -> Grant:
        """Returns whose token a request has. Raises Refusal."""
        token = token_of(request)
        if any("token" in name for name in request.query) or (token and token in str(request.rel_url)):
            self.problem("a token was in an address")
        if writes and request.headers.get("X-Restli-Protocol-Version") != "2.0.0":
            self.problem("a request does not say the version of its protocol")
        if versioned:
            self._check_version(request.headers.get("LinkedIn-Version", ""))
        if not token:
            raise Refusal(401, "UNAUTHORIZED", "Empty oauth2_access_token", serviceErrorCode=401)
        if (grant := self.grants.get(token)) is None:
            said = "The token used in the request has been revoked by the user"
            raise Refusal(401, "REVOKED_ACCESS_TOKEN", said, serviceErrorCode=65601)
        if grant.expires <= self.clock.now():
            said = "The token used in the request has expired"
            raise Refusal(401, "EXPIRED_ACCESS_TOKEN", said, serviceErrorCode=65602)
        for who, level in (("APPLICATION", "APPLICATION"), (grant.owner, "MEMBER")):
            if self.throttled.get(who, self.clock.now()) > self.clock.now():
                said = f"Resource level throttle {level} DAY limit for calls to this resource is reached."
                raise Refusal(429, "TOO_MANY_REQUESTS", said, serviceErrorCode=101)
        if reads_posts and not grant.reads_posts:
            raise Refusal(403, "ACCESS_DENIED", "Not enough permissions to access: posts.FINDER", serviceErrorCode=100)
        return grant

    def _check_version(self, version: str) -> None:
        if not version:
            raise Refusal(400, "VERSION_MISSING", "A version must be present, by the LinkedIn-Version header.")
        if version not in self.versions:
            raise Refusal(426, "NONEXISTENT_VERSION", f"Requested version {version}01 is not active")

    def check_author(self, grant: Grant, author: object) -> None:
        if author != grant.owner:
            raise Refusal(403, "ACCESS_DENIED", "Not enough permissions to access: posts.CREATE", serviceErrorCode=100)

    def number(self) -> int:
        """Returns a new number, whose upper bits are the time, as in life."""
        self._made += 1
        return (int(self.clock.now().timestamp() * 1000) << 22) + self._made


def token_of(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def answer_of(refusal: Refusal) -> web.Response:
    return web.json_response(refusal.body, status=refusal.status)


def page_of(request: web.Request, path: str, elements: list[dict[str, Any]]) -> web.Response:
    start, count = int(request.query.get("start", 0)), int(request.query.get("count", 10))
    goes_on = start + count < len(elements)
    links = [{"rel": "next", "type": "application/json", "href": f"{path}?start={start + count}"}] if goes_on else []
    paging = {"start": start, "count": count, "links": links}
    return web.json_response({"paging": paging, "elements": elements[start : start + count]})


def _failure(status: int, code: str, description: str) -> web.Response:
    """Returns an error of the token endpoint, which has a form of its own."""
    return web.json_response({"error": code, "error_description": description}, status=status)
