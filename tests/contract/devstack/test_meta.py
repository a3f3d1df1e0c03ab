"""Tokens of the fakes of Meta's networks are got, prolonged and lost as real ones, and misuse is a problem."""

from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault, Rule
from devstack.networks.instagram import InstagramNetwork
from devstack.networks.meta import APP_ID, APP_SECRET
from testkit.clocks import FrozenClock
from tests.contract.devstack.graph_calls import GraphCalls

BACK = "https://app.example/back"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def network(clock: FrozenClock) -> AsyncIterator[FacebookNetwork]:
    async with FacebookNetwork(clock=clock) as network:
        network.pages["user-1"] = ["page-1", "page-2"]
        yield network


@pytest.fixture
def graph(network: FacebookNetwork) -> GraphCalls:
    return GraphCalls(network)


async def user_token(graph: GraphCalls) -> str:
    """Goes through the dialog; returns the short-lived token."""
    back = await graph.dialog(client_id=APP_ID, redirect_uri=BACK, state="s-1", scope="pages_show_list")
    assert back["state"] == "s-1"
    status, body = await graph.exchanged(code=back["code"], redirect_uri=BACK)
    assert status == 200, body
    return str(body["access_token"])


async def test_a_code_is_good_once_and_for_its_redirect_uri(graph: GraphCalls) -> None:
    back = await graph.dialog(client_id=APP_ID, redirect_uri=BACK, state="s")
    assert (await graph.exchanged(code=back["code"], redirect_uri="https://evil.example"))[0] == 400
    assert (await graph.exchanged(code=back["code"], redirect_uri=BACK))[0] == 400, "it was used"


async def test_a_code_that_was_asked_for_with_a_challenge_needs_its_verifier(graph: GraphCalls) -> None:
    # The example of RFC 7636, appendix B.
    visit = {"client_id": APP_ID, "redirect_uri": BACK, "state": "s"}
    challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
    verifier = {"code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
    none: dict[str, str] = {}
    cases = ((none, none, 200), (challenge, verifier, 200), (challenge, none, 400), (none, verifier, 400))
    for asked, given, status in cases:
        back = await graph.dialog(**visit, **asked)
        assert (await graph.exchanged(code=back["code"], redirect_uri=BACK, **given))[0] == status


async def test_a_person_may_leave_permissions_out(network: FacebookNetwork, graph: GraphCalls) -> None:
    network.declined = {"pages_show_list"}
    token = await user_token(graph)
    _, body = await graph.get("v25.0/me/permissions", token)
    assert body["data"] == [{"permission": "pages_show_list", "status": "declined"}]
    assert (await graph.get("v25.0/me/accounts", token))[0] == 403


async def test_a_visit_without_a_state_is_a_problem(network: FacebookNetwork, graph: GraphCalls) -> None:
    await graph.dialog(client_id=APP_ID, redirect_uri=BACK)
    assert network.problems == ["a visit without a state"]


async def test_a_token_is_prolonged_only_before_its_end(graph: GraphCalls, clock: FrozenClock) -> None:
    short = await user_token(graph)
    status, body = await graph.exchanged(grant_type="fb_exchange_token", fb_exchange_token=short)
    assert (status, body["expires_in"]) == (200, 5_184_000)
    clock.advance(timedelta(hours=1))
    status, body = await graph.exchanged(grant_type="fb_exchange_token", fb_exchange_token=short)
    assert (status, body["error"]["code"], body["error"]["error_subcode"]) == (400, 190, 463)


async def test_page_tokens_live_without_an_end_and_die_with_their_user(
    network: FacebookNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    _, body = await graph.exchanged(grant_type="fb_exchange_token", fb_exchange_token=await user_token(graph))
    _, first = await graph.get("v25.0/me/accounts", body["access_token"], limit="1")
    assert [page["id"] for page in first["data"]] == ["page-1"]
    assert "next" in first["paging"]
    token = first["data"][0]["access_token"]
    clock.advance(timedelta(days=900))
    assert (await graph.post("v25.0/page-1/feed", token, message="hello"))[0] == 200
    assert (await graph.post("v25.0/page-2/feed", token, message="hello"))[0] == 400
    network.tokens.revoke("user-1")
    status, refused = await graph.post("v25.0/page-1/feed", token, message="again")
    assert (status, refused["error"]["error_subcode"]) == (400, 460)


async def test_page_tokens_of_a_short_lived_one_end_with_it(graph: GraphCalls, clock: FrozenClock) -> None:
    _, pages = await graph.get("v25.0/me/accounts", await user_token(graph))
    clock.advance(timedelta(hours=1))
    assert (await graph.post("v25.0/page-1/feed", pages["data"][0]["access_token"], message="hello"))[0] == 400


async def test_a_token_is_debugged_by_its_application(graph: GraphCalls, clock: FrozenClock) -> None:
    token = await user_token(graph)
    query = {"input_token": token, "access_token": f"{APP_ID}|{APP_SECRET}"}
    _, body = await graph.get("v25.0/debug_token", "", **query)
    assert body["data"]["is_valid"] is True
    assert body["data"]["expires_at"] == int((clock.now() + timedelta(hours=1)).timestamp())
    clock.advance(timedelta(hours=1))
    _, body = await graph.get("v25.0/debug_token", "", **query)
    assert body["data"]["is_valid"] is False
    assert (await graph.get("v25.0/debug_token", "", input_token=token, access_token=token))[0] == 400


async def test_instagram_refreshes_a_token_that_is_a_day_old_and_not_over(clock: FrozenClock) -> None:
    async with InstagramNetwork(clock=clock) as network:
        graph = GraphCalls(network)
        token = network.tokens.issue("ann", clock.now(), life=timedelta(days=60)).value
        query = {"grant_type": "ig_refresh_token", "access_token": token}
        assert (await graph.get("refresh_access_token", "", **query))[0] == 400, "too young"
        clock.advance(timedelta(hours=24))
        status, body = await graph.get("refresh_access_token", "", **query)
        assert status == 200
        clock.advance(timedelta(days=59))
        assert (await graph.get("refresh_access_token", "", **query))[0] == 400, "over"
        newer = query | {"access_token": body["access_token"]}
        assert (await graph.get("refresh_access_token", "", **newer))[0] == 200


async def test_a_token_in_a_query_is_a_problem(network: FacebookNetwork, graph: GraphCalls) -> None:
    assert (await graph.get("v25.0/page-1", "", access_token="sandbox-1"))[0] == 200
    assert network.problems == ["/v25.0/page-1: a token in the query"]


async def test_a_change_with_a_token_that_was_refused_is_a_problem(network: FacebookNetwork, graph: GraphCalls) -> None:
    await graph.post("v25.0/page-1/feed", "stolen", message="hello")
    await graph.get("v25.0/page-1", "stolen")
    assert network.problems == [], "somebody may look whether it is good again"
    await graph.post("v25.0/page-1/feed", "stolen", message="hello")
    assert len(network.problems) == 1


async def test_a_change_within_a_pause_is_refused_again_and_a_problem(
    network: FacebookNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    network.faults.add(Rule(fault=Fault.RATE_LIMIT, seconds=90))
    await graph.post("v25.0/page-1/feed", message="hello")
    clock.advance(timedelta(seconds=89))
    assert await graph.code_of("v25.0/page-1/feed", message="hello") == (80001, None)
    assert len(network.problems) == 1
    assert (await graph.post("v25.0/page-2/feed", message="hello"))[0] == 200, "each account has its own"
    clock.advance(timedelta(seconds=1))
    assert (await graph.post("v25.0/page-1/feed", message="hello"))[0] == 200
    assert len(network.effects) == 2


async def test_settings_are_changed_by_a_control_call(network: FacebookNetwork) -> None:
    async with aiohttp.ClientSession(network.url) as session:
        async with session.put("/control/settings", json={"refuse_duplicates": True}) as answer:
            assert (await answer.json())["refuse_duplicates"] is True
        async with session.put("/control/settings", json={"tokens": 1}) as answer:
            assert answer.status == 422
    assert network.refuse_duplicates is True
