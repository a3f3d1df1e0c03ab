"""The fake of Facebook pages refuses what a page refuses."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from io import BytesIO

import aiohttp
import pytest

from devstack.networks.facebook import FacebookNetwork
from testkit.clocks import FrozenClock
from tests.contract.devstack.graph_calls import TOKEN, GraphCalls

FEED = "v25.0/1/feed"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def network(clock: FrozenClock) -> AsyncIterator[FacebookNetwork]:
    async with FacebookNetwork(clock=clock) as network:
        yield network


@pytest.fixture
def graph(network: FacebookNetwork) -> GraphCalls:
    return GraphCalls(network)


async def uploaded(network: FacebookNetwork, edge: str, content: bytes, **fields: str) -> dict[str, object]:
    form = aiohttp.FormData(fields)
    form.add_field("source", BytesIO(content), filename="f", content_type="image/jpeg")
    headers, url = {"Authorization": f"Bearer {TOKEN}"}, f"{network.url}/v25.0/1/{edge}"
    async with aiohttp.request("POST", url, headers=headers, data=form) as answer:
        body: dict[str, object] = await answer.json()
        return body


async def test_an_empty_post_and_one_that_is_too_long_are_refused(graph: GraphCalls) -> None:
    assert await graph.code_of(FEED, message="") == (100, None)
    assert await graph.code_of(FEED, message="x" * 63_207) == (100, None)
    assert (await graph.post(FEED, message="x" * 63_206))[0] == 200


async def test_the_same_text_in_a_row_is_refused_if_wanted(network: FacebookNetwork, graph: GraphCalls) -> None:
    for _ in range(2):
        assert (await graph.post(FEED, message="hello"))[0] == 200
    network.refuse_duplicates = True
    assert await graph.code_of(FEED, message="hello") == (506, None)
    assert len(network.effects) == 2


async def test_a_photo_of_another_page_or_one_that_was_posted_is_refused(
    network: FacebookNetwork, graph: GraphCalls
) -> None:
    photo = await uploaded(network, "photos", b"1", published="false")
    attached = json.dumps([{"media_fbid": photo["id"]}])
    assert await graph.code_of("v25.0/2/feed", attached_media=attached) == (100, None)
    assert (await graph.post(FEED, attached_media=attached))[0] == 200
    assert await graph.code_of(FEED, attached_media=attached) == (100, 1366051)


async def test_a_photo_that_is_too_large_is_refused(network: FacebookNetwork) -> None:
    large = await uploaded(network, "photos", bytes(4_000_000), published="false")
    assert large["error"]["error_subcode"] == 1366046  # type: ignore[index]


async def test_an_upload_that_publishes_at_once_is_a_problem(network: FacebookNetwork) -> None:
    await uploaded(network, "photos", b"1")
    await uploaded(network, "videos", b"1")
    assert len(network.problems) == 2


async def test_a_video_that_is_published_too_early_is_a_problem(network: FacebookNetwork, graph: GraphCalls) -> None:
    network.processing_polls = 1
    video = await uploaded(network, "videos", b"1", published="false")
    assert (await graph.post(f"v25.0/{video['id']}", published="true"))[0] == 400
    assert len(network.problems) == 1
    assert network.effects == []


async def test_posts_are_listed_newest_first_after_their_lag(
    network: FacebookNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    network.visibility_lag = 5
    for text in ("first", "second"):
        await graph.post(FEED, message=text)
        clock.advance(timedelta(seconds=4))
    _, body = await graph.get("v25.0/1/published_posts")
    assert [each["message"] for each in body["data"]] == ["first"]
    clock.advance(timedelta(seconds=1))
    _, body = await graph.get("v25.0/1/published_posts")
    assert [each["message"] for each in body["data"]] == ["second", "first"]
    assert body["data"][0]["created_time"] == "2026-03-02T09:00:04+0000"
    since = str(int(clock.now().timestamp()) - 5)
    _, body = await graph.get("v25.0/1/published_posts", since=since)
    assert [each["message"] for each in body["data"]] == ["second"]


async def test_a_list_is_read_by_cursors(graph: GraphCalls) -> None:
    for text in "abc":
        await graph.post(FEED, message=text)
    _, first = await graph.get("v25.0/1/published_posts", limit="2")
    assert "access_token=" in first["paging"]["next"], "as Meta does it"
    after = first["paging"]["cursors"]["after"]
    _, second = await graph.get("v25.0/1/published_posts", limit="2", after=after)
    assert [each["message"] for each in second["data"]] == ["a"]
    assert "next" not in second["paging"]


async def test_only_what_is_there_can_be_commented_on(network: FacebookNetwork, graph: GraphCalls) -> None:
    video = await uploaded(network, "videos", b"1", published="false")
    for node in ("1_2", video["id"]):
        assert await graph.code_of(f"v25.0/{node}/comments", message="first!") == (100, 33)
    _, post = await graph.post(FEED, message="hello")
    assert (await graph.post(f"v25.0/{post['id']}/comments", message="first!"))[0] == 200
    _, body = await graph.get(f"v25.0/{post['id']}/comments")
    assert [(each["message"], each["from"]["id"]) for each in body["data"]] == [("first!", "1")]
