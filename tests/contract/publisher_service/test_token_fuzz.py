"""Any answer of Meta or LinkedIn to a request for tokens ends it with a value of the right kind."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher_service.adapters.providers.answers import redacted_error
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.instagram_login import InstagramLoginOAuth, InstagramLoginTokens
from publisher_service.adapters.providers.linkedin_api import LinkedInApi
from publisher_service.adapters.providers.linkedin_tokens import (
    MEMBER_SCOPES,
    FindAccounts,
    LinkedInOAuth,
    LinkedInTokens,
    member_of,
    pages_of,
)
from publisher_service.adapters.providers.meta_errors import meta_error
from publisher_service.adapters.providers.meta_graph import VERSION
from publisher_service.adapters.providers.meta_login import MetaLogin
from publisher_service.adapters.providers.meta_tokens import (
    PAGE_SCOPES,
    FacebookLoginOAuth,
    FacebookLoginTokens,
    as_instagram,
    as_page,
)
from publisher_service.domain.connecting import GRANT_ANSWERS
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import REFRESH_ANSWERS
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.sign_in import BACK, LIMITS, LINKEDIN_APP, META_APP

ROLE = {"organization": "urn:li:organization:1", "role": "ADMINISTRATOR", "state": "APPROVED"}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["granted", "1", "", "a b,c"])
NAMES = st.sampled_from(
    [
        "access_token",
        "expires_in",
        "refresh_token",
        "refresh_token_expires_in",
        "scope",
        "permissions",
        "user_id",
        "username",
        "data",
        "paging",
        "next",
        "cursors",
        "after",
        "permission",
        "status",
        "id",
        "name",
        "tasks",
        "instagram_business_account",
        "elements",
        "links",
        "rel",
        "results",
        "localizedName",
        "sub",
        "error",
        "code",
        "error_subcode",
        "message",
        "error_message",
        "error_type",
        "error_description",
    ]
)
OBJECTS = st.recursive(
    st.dictionaries(NAMES, SCALARS, max_size=5) | st.just(ROLE),
    lambda inner: st.dictionaries(NAMES, SCALARS | inner | st.lists(inner | SCALARS, max_size=3), max_size=5),
    max_leaves=6,
)
ANSWERS = st.builds(
    Answer,
    st.sampled_from([200, 200, 200, 200, 302, 400, 401, 403, 429, 500]),
    st.sampled_from([{}, {b"retry-after": b"7"}, {b"retry-after": b"soon"}]),
    OBJECTS.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=50),
)
# A visit goes on only behind a token with all that is asked for.
TOKEN = Answer(
    200,
    {},
    json.dumps(
        {
            "access_token": "access-canary",
            "scope": " ".join(MEMBER_SCOPES),
            "permissions": "instagram_business_basic,instagram_business_content_publish",
            "data": [{"permission": name, "status": "granted"} for name in PAGE_SCOPES],
        }
    ).encode(),
)


class OddOrigin(HttpOrigin):
    """Gives these answers one after the other, and the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__("http://127.0.0.1:1", connections=1)
        self._answers = list(answers)

    async def get(self, path: str, headers: Mapping[str, str], *, timeout: timedelta) -> Answer:
        return self._next()

    async def post(self, path: str, headers: Mapping[str, str], body: bytes, *, timeout: timedelta) -> Answer:
        return self._next()

    def _next(self) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def meta_login(origin: HttpOrigin) -> MetaLogin:
    return MetaLogin("Facebook", origin, LIMITS, version=VERSION, app=META_APP)


def token_sources(origin: HttpOrigin) -> list[TokenSource]:
    return [
        FacebookLoginTokens(meta_login(origin), LIMITS, as_page),
        FacebookLoginTokens(meta_login(origin), LIMITS, as_instagram),
        InstagramLoginTokens(origin, LIMITS),
        LinkedInTokens(origin, LIMITS, LINKEDIN_APP),
    ]


def visits(origin: HttpOrigin) -> list[OAuth]:
    def linkedin(accounts: FindAccounts) -> LinkedInOAuth:
        api = LinkedInApi(origin, LIMITS, version="202610", clock=FrozenClock())
        return LinkedInOAuth(api, origin, LIMITS, app=LINKEDIN_APP, scopes=MEMBER_SCOPES, accounts=accounts)

    return [
        FacebookLoginOAuth(meta_login(origin), LIMITS, as_page, app=META_APP, version=VERSION, scopes=PAGE_SCOPES),
        InstagramLoginOAuth(origin, origin, LIMITS, app=META_APP, version=VERSION),
        linkedin(member_of),
        linkedin(pages_of),
    ]


@settings(max_examples=150)
@given(st.lists(ANSWERS, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3))
def test_any_answers_end_a_visit_or_a_refresh(answers: list[Answer], good: int, which: int) -> None:
    credentials = Credentials(access_token="access", refresh_token="refresh", user_token="user")

    async def both() -> None:
        origin = OddOrigin(*[TOKEN] * good, *answers)
        assert isinstance(await token_sources(origin)[which].refresh("1", credentials, {}), REFRESH_ANSWERS)
        origin = OddOrigin(*[TOKEN] * good, *answers)
        assert isinstance(await visits(origin)[which].exchange("code", "verifier", BACK), GRANT_ANSWERS)

    run(both())


def run(call: Coroutine[Any, Any, None]) -> None:
    asyncio.run(call)


@pytest.mark.parametrize("body", [r'{"error": {"code": 1, "message": "abc\/def-secret"}}', "not JSON abc/def-secret"])
def test_a_secret_that_json_writes_otherwise_is_taken_out(body: str) -> None:
    error = redacted_error(Answer(400, {}, body.encode()), meta_error, ["", "abc/def-secret"])
    assert "secret" not in error.message
