"""The tokens of the sandbox: refreshed by a refresh token, and granted for an authorization code."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.answers import life_in, object_of, retry_after
from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from publisher_service.adapters.providers.sandbox_http import message_of
from publisher_service.domain.connecting import Candidate, Grant, GrantAnswer, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshAnswer, RefreshDelayed, Refreshed, RefreshRefused

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_CLIENT: Final = "postflow"


class SandboxTokens:
    # Whether a token is good for one use depends on its family; what is safe for those is safe for the others.
    is_rotating: Final = True
    refresh_ahead: Final = timedelta(0)

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self._origin = origin
        self._timeout = limits.request_timeout

    def can_refresh(self, credentials: Credentials) -> bool:
        return bool(credentials.refresh_token)

    async def refresh(
        self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> RefreshAnswer:
        form = {"grant_type": "refresh_token", "refresh_token": credentials.refresh_token, "client_id": _CLIENT}
        try:
            answer = await _post_form(self._origin, form, self._timeout)
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            return RefreshDelayed(message=f"the sandbox did not answer: {type(error).__name__}")
        body = object_of(answer.body)
        if answer.status == 200:
            credentials_now = _credentials(body)
            if credentials_now is None:
                return RefreshDelayed(message="the sandbox answered, but its answer cannot be read")
            return Refreshed(
                credentials=credentials_now,
                expires_in=life_in(body, "expires_in"),
                refresh_expires_in=life_in(body, "refresh_expires_in"),
            )
        if answer.status == 400 and _code(body) == "INVALID_GRANT":
            return RefreshRefused(message=message_of(body, answer.status))
        wait = retry_after(answer) if answer.status == 429 else None
        return RefreshDelayed(message=message_of(body, answer.status), retry_after=wait)


class SandboxOAuth:
    scopes: Final = ("posts.write", "posts.read")

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self._origin = origin
        self._timeout = limits.request_timeout

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        query = {
            "response_type": "code",
            "client_id": _CLIENT,
            "redirect_uri": redirect_uri,
            "state": state,
            "scope": " ".join(self.scopes),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._origin.url}/v1/authorize?{urlencode(query)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> GrantAnswer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
            "client_id": _CLIENT,
        }
        try:
            answer = await _post_form(self._origin, form, self._timeout)
        except NotConnected as error:
            return GrantDelayed(message=f"the sandbox cannot be reached: {error}", is_unused=True)
        except (ConnectionLost, TimeoutError) as error:
            return GrantDelayed(message=f"the sandbox did not answer: {type(error).__name__}")
        body = object_of(answer.body)
        if answer.status == 200:
            return _grant(body) or GrantDelayed(message="the sandbox answered, but its answer cannot be read")
        message = message_of(body, answer.status)
        if answer.status == 400:
            return GrantRefused(message=message)
        return GrantDelayed(message=message, is_unused=answer.status == 429)


async def _post_form(origin: HttpOrigin, form: Mapping[str, str], timeout: timedelta) -> Answer:
    return await origin.post("/v1/token", _FORM, urlencode(form).encode(), timeout=timeout)


def _grant(body: Mapping[str, Any]) -> Grant | None:
    accounts, scope = body.get("accounts"), body.get("scope")
    if not isinstance(accounts, list) or not isinstance(scope, str):
        return None
    candidates = [_candidate(each) for each in accounts]
    found = [each for each in candidates if each is not None]
    return Grant(candidates=found, scopes=tuple(scope.split())) if len(found) == len(accounts) else None


def _candidate(account: Any) -> Candidate | None:
    match account:
        case {"id": str(name), "name": str(shown)} if (credentials := _credentials(account)) is not None:
            return Candidate(
                external_account_id=name,
                name=shown,
                credentials=credentials,
                expires_in=life_in(account, "expires_in"),
                refresh_expires_in=life_in(account, "refresh_expires_in"),
            )
        case _:
            return None


def _credentials(body: Mapping[Any, Any]) -> Credentials | None:
    access, refresh = body.get("access_token"), body.get("refresh_token", "")
    if not (isinstance(access, str) and access and isinstance(refresh, str)):
        return None
    return Credentials(access_token=access, refresh_token=refresh)


def _code(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    return str(error.get("code")) if isinstance(error, dict) else ""
