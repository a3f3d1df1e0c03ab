"""The fake of LinkedIn fails its clients where the network would."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest

from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.linkedin_tokens import CLIENT_ID, CLIENT_SECRET
from testkit.clocks import FrozenClock

MEMBER, PAGE = "urn:li:person:ann", "urn:li:organization:1"
HEADERS = {"LinkedIn-Version": VERSION, "X-Restli-Protocol-Version": "2.0.0"}
CLIENT = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
BACK = "https://app.example/back"
Form = dict[str, str]


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def network(clock: FrozenClock) -> AsyncIterator[LinkedIn]:
    async with LinkedIn(clock=clock) as opened:
        opened.grant("ann", MEMBER)
        opened.grant("acme", PAGE)
        yield opened


async def call(
    network: LinkedIn, method: str, path: str, *, token: str = "ann", **options: Any
) -> tuple[int, dict[str, str], Any]:
    headers = HEADERS | {"Authorization": f"Bearer {token}"} | options.pop("headers", {})
    async with (
        aiohttp.ClientSession(network.url, headers=headers) as session,
        session.request(method, path, **options) as answer,
    ):
        body = await answer.json() if answer.content_type == "application/json" and answer.content_length else {}
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, body


async def post(network: LinkedIn, text: str, *, token: str = "ann", author: str = MEMBER, **more: Any) -> Any:
    body = {"author": author, "commentary": text, "lifecycleState": "PUBLISHED", **more}
    return await call(network, "POST", "/rest/posts", token=token, json=body)


async def test_a_post_is_named_in_a_header_alone(network: LinkedIn) -> None:
    status, headers, body = await post(network, "hello")
    assert (status, body) == (201, {})
    assert [headers["x-restli-id"]] == [each["id"] for each in network.effects]


async def test_an_unescaped_character_cuts_the_text_off(network: LinkedIn) -> None:
    await post(network, "One (two) three")
    assert network.effects[0]["text"] == "One "


async def test_the_same_text_is_refused_for_a_day(network: LinkedIn, clock: FrozenClock) -> None:
    _, headers, _ = await post(network, "hello")
    network.delete(headers["x-restli-id"])
    status, _, body = await post(network, "hello")
    assert (status, body["errorDetails"]["inputErrors"][0]["code"]) == (422, "DUPLICATE_POST")
    assert headers["x-restli-id"] in body["message"]
    assert (await post(network, "hello", token="acme", author=PAGE))[0] == 201
    clock.advance(timedelta(days=1))
    assert (await post(network, "hello"))[0] == 201


@pytest.mark.parametrize(
    ("path", "status"),
    [("/rest/posts?q=author&author=urn%3Ali%3Aperson%3Aann", 403), ("/rest/images/urn%3Ali%3Aimage%3A1", 404)],
)
async def test_a_member_reads_nothing(network: LinkedIn, path: str, status: int) -> None:
    assert (await call(network, "GET", path))[0] == status
    _, _, begun = await call(
        network, "POST", "/rest/images?action=initializeUpload", json={"initializeUploadRequest": {"owner": MEMBER}}
    )
    assert (await call(network, "GET", f"/rest/images/{begun['value']['image']}"))[0] == 403


@pytest.mark.parametrize(("version", "status"), [("", 400), ("202401", 426), (VERSION, 201)])
async def test_a_version_has_to_be_alive(network: LinkedIn, version: str, status: int) -> None:
    body = {"author": MEMBER, "commentary": "hello"}
    headers = {"LinkedIn-Version": version}
    assert (await call(network, "POST", "/rest/posts", json=body, headers=headers))[0] == status


async def test_comments_of_members_need_the_unversioned_resource(network: LinkedIn) -> None:
    _, headers, _ = await post(network, "hello")
    urn, comment = headers["x-restli-id"], {"actor": MEMBER, "message": {"text": "(more)"}}
    assert (await call(network, "POST", f"/rest/socialActions/{urn}/comments", json=comment))[0] == 403
    status, _, body = await call(network, "POST", f"/v2/socialActions/{urn}/comments", json=comment)
    assert (status, network.effects[1]["text"]) == (201, "(more)")
    assert body["commentUrn"] == network.effects[1]["id"]


async def test_what_a_client_must_never_do_is_a_problem(network: LinkedIn) -> None:
    await call(network, "GET", "/v2/userinfo?oauth2_access_token=ann")
    await call(network, "POST", "/rest/posts", json={}, headers={"X-Restli-Protocol-Version": "1.0.0"})
    assert network.problems == ["a token was in an address", "a request does not say the version of its protocol"]


def form(token: str) -> Form:
    return {"grant_type": "refresh_token", "refresh_token": token} | CLIENT


async def test_only_applications_of_partners_refresh_tokens(network: LinkedIn) -> None:
    network.grant_refresh("refresh", MEMBER)
    for is_partner, token, status in ((False, "refresh", 400), (True, "other", 400), (True, "refresh", 200)):
        network.is_partner = is_partner
        seen, _, body = await call(network, "POST", "/oauth/v2/accessToken", data=form(token))
        assert (seen, body.get("error")) == (status, None if status == 200 else "invalid_grant")


async def test_a_refresh_token_lives_no_longer_for_being_used(network: LinkedIn, clock: FrozenClock) -> None:
    network.is_partner = True
    network.grant_refresh("refresh", MEMBER)
    clock.advance(timedelta(days=360))
    status, _, body = await call(network, "POST", "/oauth/v2/accessToken", data=form("refresh"))
    assert (status, body["refresh_token"]) == (200, "refresh")
    assert body["refresh_token_expires_in"] == body["expires_in"] == 5 * 86_400
    assert (await call(network, "GET", "/v2/userinfo", token=body["access_token"]))[0] == 200
    clock.advance(timedelta(days=5))
    assert (await call(network, "GET", "/v2/userinfo", token=body["access_token"]))[0] == 401
    assert (await call(network, "POST", "/oauth/v2/accessToken", data=form("refresh")))[0] == 400


async def test_a_token_expires(network: LinkedIn, clock: FrozenClock) -> None:
    clock.advance(timedelta(days=60))
    status, _, body = await post(network, "hello")
    assert (status, body["code"]) == (401, "EXPIRED_ACCESS_TOKEN")


async def code_of(network: LinkedIn, scope: str) -> str:
    visit = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": BACK, "state": "s", "scope": scope}
    path = f"/oauth/v2/authorization?{urlencode(visit)}"
    status, headers, _ = await call(network, "GET", path, allow_redirects=False)
    assert status == 302
    return parse_qs(urlsplit(headers["location"]).query)["code"][0]


async def redeem(network: LinkedIn, code: str, **more: str) -> tuple[int, Any]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK} | CLIENT | more
    status, _, body = await call(network, "POST", "/oauth/v2/accessToken", data=form)
    return status, body


async def test_a_code_is_good_once_and_without_a_verifier(network: LinkedIn) -> None:
    code = await code_of(network, "openid profile")
    status, body = await redeem(network, code)
    assert (status, body["scope"], body.get("refresh_token")) == (200, "openid,profile", None)
    assert (await redeem(network, code))[1]["error"] == "invalid_request"
    elsewhere = await redeem(network, await code_of(network, "openid"), redirect_uri="https://evil.example")
    assert elsewhere[1]["error"] == "invalid_request"
    status, body = await redeem(network, await code_of(network, "openid"), code_verifier="v" * 43)
    assert (status, body["error"]) == (401, "invalid_client")


async def test_a_member_posts_for_the_pages_that_were_granted(network: LinkedIn) -> None:
    network.pages[MEMBER] = [(1, "Acme"), (2, "Umbrella")]
    _, body = await redeem(network, await code_of(network, "r_organization_social w_organization_social"))
    assert (await post(network, "hello", token=body["access_token"], author=PAGE))[0] == 201
    assert (await post(network, "hello", token=body["access_token"], author="urn:li:organization:3"))[0] == 403
    assert [each["account"] for each in network.effects] == [PAGE]
    status, _, _ = await call(network, "GET", "/rest/organizationAcls?q=roleAssignee", token=body["access_token"])
    assert status == 403, "the scope rw_organization_admin is missing"
