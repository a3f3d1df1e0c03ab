"""No secret of a request for tokens is in a message, a repr or a log, no matter which answer comes."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.instagram_login import Login
from publisher_service.domain.connecting import Grant, GrantDelayed, GrantRefused
from publisher_service.domain.refresh import RefreshDelayed, RefreshRefused
from tests.contract.publisher_service.sign_in import (
    LINKEDIN_APP,
    META_APP,
    SignIn,
    facebook_sign_in,
    instagram_sign_in,
    linkedin_sign_in,
)

SECRETS = {"client_secret", "code", "code_verifier", "fb_exchange_token", "access_token", "refresh_token"}
# The longest message of an error: what stands behind it is cut off, in the midst of a secret if need be.
LONGEST = 500
Open = Callable[..., AbstractAsyncContextManager[SignIn[Any]]]
# With the number of requests that a visit takes, and a refresh.
NETWORKS: Mapping[str, tuple[Open, int, int]] = {
    "facebook": (facebook_sign_in, 4, 2),
    "instagram by page": (partial(instagram_sign_in, login=Login.FACEBOOK), 4, 2),
    "instagram": (partial(instagram_sign_in, login=Login.INSTAGRAM), 3, 1),
    "linkedin": (linkedin_sign_in, 2, 1),
    "linkedin page": (partial(linkedin_sign_in, is_page=True), 2, 1),
}
VISITS = [(name, number) for name, (_, visits, _) in NETWORKS.items() for number in range(visits)]
REFRESHES = [(name, number) for name, (_, _, refreshes) in NETWORKS.items() for number in range(refreshes)]


class Echo(HttpOrigin):
    """Answers the requests from a certain one on by an error that repeats their secrets."""

    def __init__(self, url: str, *, connections: int) -> None:
        super().__init__(url, connections=connections)
        self.heard: list[str] = []
        self.left = 10**9
        self.status, self.code, self.padding = 400, 100, ""

    async def get(self, path: str, headers: Mapping[str, str], *, timeout: timedelta) -> Answer:
        return self._echo(path, headers, b"") or await super().get(path, headers, timeout=timeout)

    async def post(self, path: str, headers: Mapping[str, str], body: bytes, *, timeout: timedelta) -> Answer:
        return self._echo(path, headers, body) or await super().post(path, headers, body, timeout=timeout)

    def _echo(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:
        self.left -= 1
        if self.left >= 0:
            return None
        given = parse_qsl(urlsplit(path).query) + parse_qsl(body.decode())
        heard = [value for name, value in given if name in SECRETS]
        heard += [headers["Authorization"].removeprefix("Bearer ")] if "Authorization" in headers else []
        self.heard += heard
        text = self.padding + " ".join(heard)
        words = {"message": text, "error_message": text, "error_description": text, "error_type": "OAuthException"}
        error = {"error": {"code": self.code, "message": text}} if self.code else {"error": "invalid_grant"}
        return Answer(self.status, {}, json.dumps(words | error).encode())


@pytest.mark.parametrize("padding", ["", "-" * (LONGEST - 7)], ids=["whole", "cut"])
@pytest.mark.parametrize("code", [0, 1, 100, 190])
@pytest.mark.parametrize(("name", "number"), VISITS)
async def test_a_visit_tells_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, number: int, code: int, padding: str
) -> None:
    caplog.set_level("DEBUG")
    async with NETWORKS[name][0](tmp_path, connect=Echo) as rig:
        visit = await rig.visit()
        echo = rig.origin
        assert isinstance(echo, Echo)
        echo.left, echo.code, echo.padding = number, code, padding
        answer = await rig.exchange(visit)
        assert isinstance(answer, GrantRefused | GrantDelayed), answer
        assert_silent(echo, answer.message, caplog)


@pytest.mark.parametrize("padding", ["", "-" * (LONGEST - 7)], ids=["whole", "cut"])
@pytest.mark.parametrize("code", [0, 1, 100, 190])
@pytest.mark.parametrize(("name", "number"), REFRESHES)
async def test_a_refresh_tells_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, number: int, code: int, padding: str
) -> None:
    caplog.set_level("DEBUG")
    async with NETWORKS[name][0](tmp_path, connect=Echo) as rig:
        if name == "linkedin page":
            rig.network.pages["urn:li:person:ann"] = [(1, "Acme")]
        candidate = await rig.candidate()
        rig.clock.advance(timedelta(days=2))
        echo = rig.origin
        assert isinstance(echo, Echo)
        echo.left, echo.code, echo.padding = number, code, padding
        answer = await rig.refresh(candidate.external_account_id, candidate.credentials)
        assert isinstance(answer, RefreshRefused | RefreshDelayed), answer
        assert_silent(echo, answer.message, caplog)


def assert_silent(echo: Echo, message: str, caplog: pytest.LogCaptureFixture) -> None:
    assert echo.heard, "no request had a secret"
    shown = [message, caplog.text, *(repr(record.__dict__) for record in caplog.records)]
    assert not [secret for secret in echo.heard for text in shown if secret in text]
    # What is left of one that was cut off.
    end = message.rstrip("*")[-7:]
    assert not [secret for secret in echo.heard if end and secret.startswith(end)]


@pytest.mark.parametrize("name", NETWORKS)
async def test_what_is_granted_shows_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    caplog.set_level("DEBUG")
    async with NETWORKS[name][0](tmp_path) as rig:
        rig.network.pages.setdefault("urn:li:person:ann", [(1, "Acme")])
        grant = await rig.connect()
        assert isinstance(grant, Grant)
        credentials = grant.candidates[0].credentials
        rig.clock.advance(timedelta(days=2))
        answer = await rig.refresh(grant.candidates[0].external_account_id, credentials)
        shown = repr([grant, answer, META_APP, LINKEDIN_APP, rig.provider, vars(rig.provider)]) + caplog.text
        assert not [secret for secret in (*credentials.secrets, "app-secret") if secret in shown]
