"""A feed: hints from one reader of a stream for many listeners, which miss none in any trouble of the server."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.feed import Feed, Heard, Hint, Listener, Point
from servicekit.bus.streams import StreamSpec, ensure_stream
from servicekit.faults import LimitReached, OutOfRange, Unavailable
from testkit.eventually import eventually

NEWS = StreamSpec(name="NEWS", subjects=("news.>",), work_queue=False, max_age=timedelta(hours=1))


def decode(payload: bytes, organizations: Collection[str]) -> Iterator[Hint]:
    """Reads `organization/key/name/version` lines."""
    for line in payload.decode().split():
        organization, key, name, version = line.split("/")
        if organization in organizations:
            yield Hint(f"{organization}/{key}", name, int(version))


def feed_of(connection: Client, **changes: Any) -> Feed:
    given: dict[str, Any] = {"most": 10, "patience": timedelta(seconds=2)} | changes
    return Feed(connection, stream=NEWS.name, subjects=["news.a", "news.b"], decode=decode, **given)


@asynccontextmanager
async def running(feed: Feed) -> AsyncIterator[Feed]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(feed.run(stop))
        try:
            yield feed
        finally:
            stop.set()


@pytest.fixture
async def news(own_connection: Client) -> Client:
    await ensure_stream(own_connection.jetstream(), NEWS)
    return own_connection


async def say(connection: Client, *lines: str, subject: str = "news.a") -> int:
    return (await connection.jetstream().publish(subject, " ".join(lines).encode())).seq


async def consumers(connection: Client) -> int:
    return len(await connection.jetstream().consumers_info(NEWS.name))


async def hinted(listener: Listener, *names: str) -> dict[Any, Heard]:
    """Waits until the listener has heard all these names."""
    found: dict[Any, Heard] = {}

    def complete() -> bool:
        found.update(listener.take())
        return set(names) <= found.keys()

    await eventually(complete)
    return found


async def test_a_listener_hears_what_concerns_its_key(news: Client) -> None:
    async with running(feed_of(news)) as feed, feed.listening("acme", "acme/page", None) as listener:
        await say(news, "acme/page/s1/1", "acme/other/s2/1", "umbrella/page/s3/1", subject="news.b")
        await say(news, "acme/page/s4/1", subject="news.c")
        await say(news, "acme/page/s5/1")
        assert (await hinted(listener, "s1", "s5")).keys() == {"s1", "s5"}


async def test_hints_about_a_thing_become_one(news: Client) -> None:
    async with running(feed_of(news)) as feed, feed.listening("acme", "acme/page", None) as listener:
        first = await say(news, "acme/page/s1/3")
        await say(news, "acme/page/s1/7", "acme/page/s1/5")
        last = await say(news, "acme/page/s2/1")
        await eventually(lambda: feed.point.sequence == last)
        assert listener.take() == {"s1": Heard(first, 7), "s2": Heard(last, 1)}
        assert listener.take() == {}


async def test_all_listeners_share_a_consumer_that_ends_with_the_last(news: Client) -> None:
    async with running(feed_of(news)) as feed:
        assert await consumers(news) == 0
        async with feed.listening("acme", "acme/page", None) as one:
            async with feed.listening("acme", "acme/page", None) as two:
                await say(news, "acme/page/s1/1")
                await hinted(one, "s1")
                await hinted(two, "s1")
                assert await consumers(news) == 1
            await say(news, "acme/page/s2/1")
            await hinted(one, "s2")
        await eventually(lambda: _has_none(news))
        async with feed.listening("acme", "acme/page", None) as again:
            await say(news, "acme/page/s3/1")
            await hinted(again, "s3")


async def _has_none(connection: Client) -> bool:
    return await consumers(connection) == 0


async def test_a_listener_goes_on_after_a_point(news: Client) -> None:
    async with running(feed_of(news)) as feed:
        async with feed.listening("acme", "acme/page", None) as listener:
            await say(news, "acme/page/s1/1")
            await hinted(listener, "s1")
            await eventually(lambda: feed.point.sequence == 1)
            point = feed.point
        await say(news, "acme/page/s2/1", "acme/other/s9/1")
        await say(news, "acme/page/s3/1")
        async with feed.listening("acme", "acme/page", point) as listener:
            await say(news, "acme/page/s4/1")
            assert (await hinted(listener, "s2", "s3", "s4")).keys() == {"s2", "s3", "s4"}


async def test_nothing_is_lost_across_breaks_of_listening(news: Client) -> None:
    """All that is said while a listener comes and goes reaches it, if it goes on after the point of its last hints."""
    chance = random.Random(7)
    said: set[str] = set()
    heard: set[Any] = set()
    async with running(feed_of(news)) as feed:
        async with feed.listening("acme", "acme/page", None):
            point = feed.point
        for turn in range(12):
            for number in range(chance.randrange(4)):
                said.add(f"away-{turn}-{number}")
                await say(news, f"acme/page/away-{turn}-{number}/1")
            async with feed.listening("acme", "acme/page", point) as listener:
                for number in range(chance.randrange(4)):
                    said.add(f"here-{turn}-{number}")
                    await say(news, f"acme/page/here-{turn}-{number}/1")
                point = feed.point
                heard |= listener.take().keys()
        async with feed.listening("acme", "acme/page", point) as listener:
            heard |= (await hinted(listener, *(said - heard))).keys()
    assert heard == said


async def test_a_point_that_is_not_kept_any_more_is_refused(own_connection: Client) -> None:
    news = own_connection
    await ensure_stream(news.jetstream(), replace(NEWS, max_messages=3))
    for number in range(5):
        await say(news, f"acme/page/s{number}/1")
    async with running(feed_of(news, longest=2)) as feed:
        async with feed.listening("acme", "acme/page", None):
            now = feed.point
        points = {
            "too old": now._replace(sequence=1),
            "too far back": now._replace(sequence=2),
            "of a longer stream": now._replace(sequence=6),
            "of another stream": now._replace(create_time=now.create_time - timedelta(seconds=1)),
        }
        for name, point in points.items():
            with pytest.raises(OutOfRange) as refused:
                await _listen(feed, point)
            assert refused.value.reason == "RESUME_TOKEN_EXPIRED", name
        await _listen(feed, now._replace(sequence=3))


async def _listen(feed: Feed, point: Point) -> None:
    async with feed.listening("acme", "acme/page", point):
        pass


async def test_listeners_are_bounded(news: Client) -> None:
    async with running(feed_of(news, most=1)) as feed, feed.listening("acme", "acme/page", None):
        with pytest.raises(LimitReached) as refused:
            async with feed.listening("acme", "acme/page", None):
                pass
        assert refused.value.reason == "TOO_MANY_WATCHERS"


async def test_a_restart_of_the_server_loses_nothing(news: Client, fresh_nats: EmbeddedNats) -> None:
    patient = feed_of(news, patience=timedelta(seconds=20))
    async with running(patient) as feed, feed.listening("acme", "acme/page", None) as listener:
        await say(news, "acme/page/s1/1")
        await hinted(listener, "s1")
        await fresh_nats.restart()
        await eventually(lambda: news.is_connected)
        await say(news, "acme/page/s2/1")
        await hinted(listener, "s2")


async def test_listeners_hear_that_the_stream_is_away(news: Client, fresh_nats: EmbeddedNats) -> None:
    async with running(feed_of(news, patience=timedelta(seconds=0.5))) as feed:
        async with feed.listening("acme", "acme/page", None) as listener:
            await fresh_nats.kill()
            with pytest.raises(Unavailable) as away:
                await hinted(listener, "never")
            assert away.value.reason == "STREAM_UNREACHABLE"
        with pytest.raises(Unavailable):
            await _listen(feed, feed.point)
        await fresh_nats.start()


async def test_listeners_hear_that_it_is_another_stream(news: Client) -> None:
    async with running(feed_of(news)) as feed, feed.listening("acme", "acme/page", None) as listener:
        await say(news, "acme/page/s1/1")
        await hinted(listener, "s1")
        await news.jetstream().delete_stream(NEWS.name)
        await ensure_stream(news.jetstream(), NEWS)
        with pytest.raises(OutOfRange):
            await hinted(listener, "never")
