"""Parts that the fakes of Facebook and Instagram share: errors, lists, tokens, and the ways to get tokens.

A page token comes from the token of its user, and dies with it. A token in a query is a problem, unless the call is
one that takes it there. So is a request to change something after the same token was refused, or within a pause, and
a visit to the dialog without a state.
"""

import base64
import hashlib
import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlencode

from aiohttp import web

from devstack.networks.meta_tokens import INVALID, LONG, SHORT, Kind, Token, Tokens
from devstack.networks.network import Network, operation
from servicekit.clock import Clock

ROOT = r"/{version:v\d+\.\d+}"
APP_ID, APP_SECRET = "app", "app-secret"
"""The application that may exchange codes and tokens."""

_CODE_LIFE = timedelta(minutes=10)
_TASKS = ("CREATE_CONTENT", "MODERATE", "MANAGE")

Self = TypeVar("Self", bound="MetaNetwork")
Serve = Callable[[Self, web.Request], Awaitable[web.Response]]


def call(name: str) -> Callable[[Serve[Self]], Serve[Self]]:
    """Names a call of the Graph API, which needs a token that is good."""

    def named(handler: Serve[Self]) -> Serve[Self]:
        @operation(name)
        async def checked(network: Self, request: web.Request) -> web.Response:
            return network.gate(request) or await handler(network, request)

        return checked

    return named


@dataclass(frozen=True, slots=True)
class Consent:
    """The consent of a person, behind a code that is good once."""

    user: str
    redirect_uri: str
    challenge: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    code: int
    subcode: int | None
    message: str


class MetaNetwork(Network):
    # These `PUT /control/settings` may set.
    settings: ClassVar[Sequence[str]] = ()
    rate_code: ClassVar[int]

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        self.tokens = Tokens()
        # The pages of users, and who logs in at the dialog.
        self.pages: dict[str, list[str]] = {}
        self.login_user = "user-1"
        # Permissions that the next person leaves out, and what people have granted; nothing is known of other users.
        self.declined: set[str] = set()
        self.granted: dict[str, set[str]] = {}
        # What a user may do on a page, if it is not everything, and the Instagram accounts (id, name) of pages.
        self.tasks: dict[str, list[str]] = {}
        self.instagram_of: dict[str, tuple[str, str]] = {}
        # Whether it is said how long a token lives; at times Meta leaves that out.
        self.says_life = True
        # Requests for tokens that had the secret of the application in their address, where logs show it.
        self.open_secrets = 0
        self._codes: dict[str, Consent] = {}
        self._refused: set[str] = set()
        self._paused: dict[str, datetime] = {}
        self._count = 0

    @abstractmethod
    def owner_of(self, node: str) -> str:
        """Returns the account of a post, video, photo or container; empty if it is unknown."""

    @abstractmethod
    def graph(self) -> Iterable[web.RouteDef]:
        """Returns the calls of this network."""

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get(f"{ROOT}/dialog/oauth", self.dialog),
            web.get(f"{ROOT}/oauth/access_token", self.exchange),
            web.post(f"{ROOT}/oauth/access_token", self.exchange),
            web.get(f"{ROOT}/me/accounts", self.accounts),
            web.get(f"{ROOT}/me/permissions", self.permissions),
            web.get(f"{ROOT}/debug_token", self.debug),
            *self.graph(),
            web.get(f"{ROOT}/{{account}}", self.account),
        )

    def control(self) -> Iterable[web.RouteDef]:
        return (
            web.put("/control/settings", self._put_settings),
            web.post("/control/users/{user}/tokens", self._post_token),
            web.delete("/control/users/{user}/tokens", self._revoke),
        )

    def account_of(self, request: web.Request) -> str:
        return request.match_info.get("account", "") or self.owner_of(request.match_info.get("node", ""))

    def gate(self, request: web.Request) -> web.Response | None:
        """Returns the refusal of a call, if it is refused before anything else is looked at."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if "access_token" in request.query:
            self.problem(f"{request.path}: a token in the query")
            token = request.query["access_token"]
        elif scheme not in ("Bearer", "OAuth"):
            token = ""
        account, changes = self.account_of(request), request.method != "GET"
        if changes and token in self._refused:
            self.problem(f"{request.path}: a call with a token that was refused")
        until = self._paused.get(account)
        if changes and until is not None and (left := (until - self.clock.now()).total_seconds()) > 0:
            self.problem(f"{request.path}: a call {left:.1f} s before the end of a pause")
            return self.rate_limited(request, left)
        subcode = self.tokens.subcode(token, account, self.clock.now())
        if subcode is None:
            return None
        self._refused.add(token)
        return self.failure(190, subcode, "Error validating access token", kind="OAuthException")

    def failure(
        self,
        code: int,
        subcode: int | None = None,
        message: str = "Invalid parameter",
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
        kind: str = "GraphMethodException",
    ) -> web.Response:
        details = {"error_subcode": subcode} if subcode is not None else {}
        error = {"message": f"(#{code}) {message}", "type": kind, "code": code, **details, "fbtrace_id": "AbCdEf"}
        return web.json_response({"error": error}, status=status, headers=headers)

    def absent(self) -> web.Response:
        return self.failure(100, 33, "Unsupported request. The object does not exist")

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        account = self.account_of(request)
        self._paused[account] = self.clock.now() + timedelta(seconds=seconds)
        usage = {"type": self.name, "call_count": 100, "total_cputime": 20, "total_time": 20}
        minutes = {"estimated_time_to_regain_access": -int(-seconds // 60)}
        headers = {"X-Business-Use-Case-Usage": json.dumps({account: [usage | minutes]})}
        return self.failure(self.rate_code, None, "There have been too many calls to this account", headers=headers)

    def error(self) -> Mapping[str, Any]:
        return {"error": {"message": "Service temporarily unavailable", "type": "OAuthException", "code": 2}}

    def number(self) -> int:
        """Returns a number that no other object has."""
        self._count += 1
        return self._count

    def stamp(self) -> str:
        """Returns the time as the Graph API writes it."""
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%S+0000")

    def listed(self, request: web.Request, entries: Sequence[Mapping[str, Any]]) -> web.Response:
        """Answers with a page of a list. The address of the next one has the token in it, as Meta's has."""
        first, limit = int(request.query.get("after", "0")), int(request.query.get("limit", "25"))
        page = list(entries[first : first + limit])
        paging: dict[str, Any] = {"cursors": {"before": str(first), "after": str(first + len(page))}}
        if first + limit < len(entries):
            token = request.headers.get("Authorization", "").partition(" ")[2]
            paging["next"] = f"{request.url.update_query(after=str(first + limit), access_token=token)}"
        return web.json_response({"data": page, "paging": paging if page else {}})

    @operation("dialog")
    async def dialog(self, request: web.Request) -> web.Response:
        """Logs a user in, who agrees, and sends the browser back with a code."""
        query = request.query
        if query.get("client_id") != APP_ID or not query.get("redirect_uri"):
            return web.Response(status=400, text="Invalid App ID or redirect_uri")
        if not query.get("state"):
            self.problem("a visit without a state")
        asked = {scope for scope in query.get("scope", "").split(",") if scope}
        self.granted[self.login_user] = self.granted.get(self.login_user, set()) - self.declined | asked - self.declined
        code = f"code-{self.number()}"
        expires = self.clock.now() + _CODE_LIFE
        self._codes[code] = Consent(self.login_user, query["redirect_uri"], query.get("code_challenge", ""), expires)
        back = urlencode({"code": code, "state": query.get("state", "")})
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{back}"})

    @operation("exchange")
    async def exchange(self, request: web.Request) -> web.Response:
        """Exchanges a code for a token, or one token for another that lives longer."""
        given = {**request.query, **{name: str(text) for name, text in (await request.post()).items()}}
        self.open_secrets += "client_secret" in request.query
        if given.get("client_id") != APP_ID or given.get("client_secret") != APP_SECRET:
            return self.failure(1, None, "Error validating client secret", kind="OAuthException")
        if given.get("grant_type") == "fb_exchange_token":
            return self.prolonged(given.get("fb_exchange_token", ""))
        user = self.redeemed(given)
        if isinstance(user, Refusal):
            return self.failure(user.code, user.subcode, user.message, kind="OAuthException")
        return self.issued(user, SHORT)

    def redeemed(self, given: Mapping[str, str]) -> str | Refusal:
        """Returns the user of a code, which is good once, for a while, and for those who began the visit."""
        consent = self._codes.pop(given.get("code", ""), None)
        if consent is None:
            return Refusal(100, 36009, "This authorization code has been used")
        if consent.expires <= self.clock.now():
            return Refusal(100, 36007, "This authorization code has expired")
        if consent.redirect_uri != given.get("redirect_uri"):
            return Refusal(100, 36008, "Please make sure your redirect_uri is identical to the one you used")
        verifier = given.get("code_verifier", "")
        if verifier and not consent.challenge:
            return Refusal(1, None, "code_verifier param is provided without a code_challenge")
        if consent.challenge and consent.challenge != _challenge_of(verifier):
            return Refusal(1, None, "Invalid code verifier")
        return consent.user

    @operation("accounts")
    async def accounts(self, request: web.Request) -> web.Response:
        """Lists the pages of the user, each with a token: without an end if the user's token lives long."""
        value, now = _token_of(request), self.clock.now()
        token = self.tokens.get(value)
        if token is None or (subcode := self.tokens.subcode(value, "", now)) is not None:
            return self.failure(190, INVALID if token is None else subcode, "Error validating access token")
        if "pages_show_list" not in self.granted.get(token.user, {"pages_show_list"}):
            return self.failure(200, None, "Requires pages_show_list permission", status=403)
        is_short = token.expires is not None and token.expires - token.issued <= SHORT
        life = token.expires - now if is_short and token.expires is not None else None
        asked = request.query.get("fields", "id,name,access_token,tasks")
        pages = [
            _fields(
                self._page(page, self.tokens.issue(token.user, now, life=life, kind=Kind.PAGE, account=page)), asked
            )
            for page in self.pages.get(token.user, [])
        ]
        return self.listed(request, pages)

    def _page(self, page: str, token: Token) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": page,
            "name": page,
            "access_token": token.value,
            "tasks": self.tasks.get(page, list(_TASKS)),
        }
        if page in self.instagram_of:
            identifier, name = self.instagram_of[page]
            shown["instagram_business_account"] = {"id": identifier, "username": name}
        return shown

    @operation("permissions")
    async def permissions(self, request: web.Request) -> web.Response:
        """Lists what the user was asked for, also what was declined."""
        value = _token_of(request)
        token, subcode = self.tokens.get(value), self.tokens.subcode(value, "", self.clock.now())
        if token is None or subcode is not None:
            return self.failure(190, subcode or INVALID, "Error validating access token", kind="OAuthException")
        granted = dict.fromkeys(sorted(self.granted.get(token.user, set())), "granted")
        declined = dict.fromkeys(sorted(self.declined), "declined")
        entries = [{"permission": name, "status": status} for name, status in (granted | declined).items()]
        return web.json_response({"data": entries})

    @operation("debug_token")
    async def debug(self, request: web.Request) -> web.Response:
        if request.query.get("access_token") != f"{APP_ID}|{APP_SECRET}":
            return self.failure(190, INVALID, "Invalid OAuth access token signature")
        value = request.query.get("input_token", "")
        token, subcode = self.tokens.get(value), self.tokens.subcode(value, "", self.clock.now())
        facts: dict[str, Any] = {"app_id": APP_ID, "is_valid": subcode is None, "scopes": []}
        if token is not None:
            expires = int(token.expires.timestamp()) if token.expires is not None else 0
            facts |= {"type": token.kind, "user_id": token.user, "profile_id": token.account, "expires_at": expires}
        return web.json_response({"data": facts})

    @call("account")
    async def account(self, request: web.Request) -> web.Response:
        account = request.match_info["account"]
        return web.json_response({"id": account, "name": account, "username": account})

    def prolonged(self, value: str, *, least_age: timedelta = timedelta(0)) -> web.Response:
        """Answers with a token that lives long, for one that is neither over nor too young."""
        token, now = self.tokens.get(value), self.clock.now()
        subcode = self.tokens.subcode(value, "", now)
        if token is None or subcode is not None:
            return self.failure(190, subcode or INVALID, "Error validating access token", kind="OAuthException")
        if now - token.issued < least_age:
            return self.failure(10, None, "The access token is less than 24 hours old", kind="OAuthException")
        return self.issued(token.user, LONG, account=token.account)

    def issued(self, user: str, life: timedelta, *, account: str = "") -> web.Response:
        token = self.tokens.issue(user, self.clock.now(), life=life, account=account)
        said = {"expires_in": int(life.total_seconds())} if self.says_life else {}
        return web.json_response({"access_token": token.value, "token_type": "bearer", **said})

    async def _put_settings(self, request: web.Request) -> web.Response:
        given = await request.json()
        if not isinstance(given, dict) or given.keys() - set(self.settings):
            return web.json_response({"error": f"send some of {', '.join(self.settings)}"}, status=422)
        for name, value in given.items():
            setattr(self, name, value)
        return web.json_response({name: getattr(self, name) for name in self.settings})

    async def _post_token(self, request: web.Request) -> web.Response:
        """Issues a token of a user; `seconds` says how long it lives."""
        user, seconds = request.match_info["user"], float(request.query.get("seconds", LONG.total_seconds()))
        return self.issued(user, timedelta(seconds=seconds), account=request.query.get("account", ""))

    async def _revoke(self, request: web.Request) -> web.Response:
        self.tokens.revoke(request.match_info["user"])
        return web.json_response({})


def _token_of(request: web.Request) -> str:
    return request.query.get("access_token") or request.headers.get("Authorization", "").partition(" ")[2]


def _fields(entry: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """Returns the fields that are asked for; of an object inside, all."""
    names = {each.partition("{")[0] for each in asked.split(",")}
    return {name: value for name, value in entry.items() if name in names}


def _challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
