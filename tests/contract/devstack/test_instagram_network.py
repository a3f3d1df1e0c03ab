"""The fake of Instagram keeps the life of containers, and its quota at the moment of publishing."""

import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web

from devstack.networks.instagram import InstagramNetwork
from testkit.clocks import FrozenClock
from tests.contract.devstack.graph_calls import GraphCalls

MEDIA, PUBLISH = "v25.0/1/media", "v25.0/1/media_publish"
PICTURE = {"image_url": "https://media.example/a.jpg"}


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def network(clock: FrozenClock) -> AsyncIterator[InstagramNetwork]:
    async with InstagramNetwork(clock=clock) as network:
        yield network


@pytest.fixture
def graph(network: InstagramNetwork) -> GraphCalls:
    return GraphCalls(network)


async def container(graph: GraphCalls, **fields: str) -> str:
    status, body = await graph.post(MEDIA, **(PICTURE | fields))
    assert status == 200, body
    return str(body["id"])


async def state(graph: GraphCalls, name: str) -> str:
    _, body = await graph.get(f"v25.0/{name}", fields="status_code")
    return str(body["status_code"])


async def test_a_container_is_processed_published_and_over(
    network: InstagramNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    network.processing_polls, network.processing_seconds = 1, 10
    first, second = await container(graph), await container(graph)
    assert await state(graph, first) == "IN_PROGRESS"
    assert await state(graph, first) == "IN_PROGRESS"
    clock.advance(timedelta(seconds=10))
    assert await state(graph, first) == "FINISHED"
    assert (await graph.post(PUBLISH, creation_id=first))[0] == 200
    clock.advance(timedelta(hours=24))
    assert await state(graph, first) == "PUBLISHED"
    assert await state(graph, second) == "EXPIRED"
    assert network.problems == []


async def test_publishing_too_early_or_too_late_is_a_problem(
    network: InstagramNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    network.processing_seconds = 10
    name = await container(graph)
    assert await graph.code_of(PUBLISH, creation_id=name) == (9007, 2207027)
    clock.advance(timedelta(hours=24))
    assert await graph.code_of(PUBLISH, creation_id=name) == (24, 2207008)
    assert len(network.problems) == 2
    assert network.effects == []


async def test_a_container_is_published_once(network: InstagramNetwork, graph: GraphCalls) -> None:
    name = await container(graph)
    await graph.post(PUBLISH, creation_id=name)
    assert (await graph.post(PUBLISH, creation_id=name))[0] == 400
    assert len(network.effects) == 1


async def test_a_carousel_before_its_parts_is_a_problem(network: InstagramNetwork, graph: GraphCalls) -> None:
    network.processing_polls = 1
    parts = [await container(graph, is_carousel_item="true") for _ in range(2)]
    fields = {"media_type": "CAROUSEL", "children": ",".join(parts)}
    assert await graph.code_of(MEDIA, **fields) == (9007, 2207027)
    assert len(network.problems) == 1
    for part in parts:
        await state(graph, part)
    assert (await graph.post(MEDIA, **fields))[0] == 200
    assert await graph.code_of(MEDIA, media_type="CAROUSEL", children=parts[0]) == (100, 2207028)
    assert await graph.code_of(PUBLISH, creation_id=parts[0]) == (24, 2207006)


async def test_the_quota_holds_at_publishing_over_a_rolling_day(
    network: InstagramNetwork, graph: GraphCalls, clock: FrozenClock
) -> None:
    network.quota_total = 1
    first, second = await container(graph), await container(graph)
    network.write("1", "by hand, which does not count")
    assert (await graph.post(PUBLISH, creation_id=first))[0] == 200
    assert await graph.code_of(PUBLISH, creation_id=second) == (9, 2207042)
    _, body = await graph.get("v25.0/1/content_publishing_limit")
    assert body["data"] == [{"quota_usage": 1, "config": {"quota_total": 1, "quota_duration": 86400}}]
    clock.advance(timedelta(hours=24))
    assert (await graph.post(PUBLISH, creation_id=await container(graph)))[0] == 200


async def test_stories_are_not_listed_among_media(graph: GraphCalls) -> None:
    await graph.post(PUBLISH, creation_id=await container(graph, media_type="STORIES", caption="lost"))
    await graph.post(PUBLISH, creation_id=await container(graph, caption="kept"))
    _, body = await graph.get(MEDIA)
    assert [(each["caption"], each["media_product_type"]) for each in body["data"]] == [("kept", "FEED")]


async def test_a_failed_container_names_its_subcode(network: InstagramNetwork, graph: GraphCalls) -> None:
    network.processing_error = 2207026
    _, body = await graph.get(f"v25.0/{await container(graph)}")
    assert body["status_code"] == "ERROR"
    assert "2207026" in body["status"]


async def test_media_is_fetched_from_its_address_if_wanted(network: InstagramNetwork, graph: GraphCalls) -> None:
    network.fetches_media = True

    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=b"picture")

    app = web.Application()
    app.router.add_get("/a.jpg", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        name = await container(graph, image_url=f"{url}/a.jpg")
        await graph.post(PUBLISH, creation_id=name)
        assert network.effects[0]["media"] == [hashlib.sha256(b"picture").hexdigest()]
        assert await graph.code_of(MEDIA, image_url=f"{url}/b.jpg") == (9004, 2207052)
    finally:
        await runner.cleanup()
    assert await graph.code_of(MEDIA, image_url=f"{url}/a.jpg") == (9004, 2207052)
