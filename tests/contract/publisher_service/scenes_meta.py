"""Scenes of Facebook pages and of Instagram."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.instagram import InstagramNetwork
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.domain.outcome import Accepted, Outcome
from servicekit.clock import Clock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, Scene, named

TOKEN = "sandbox-token-1"
PAGE = Post(
    external_account_id="100200",
    access_token=TOKEN,
    channel="facebook",
    destination="",
    text="hello",
    idempotency_key="job-1",
    organization_id="acme",
)
FEED = Post(
    external_account_id="300400",
    access_token=TOKEN,
    channel="instagram_feed",
    destination="",
    text="hello",
    idempotency_key="job-1",
    organization_id="acme",
)
# Answers after which the container says that the post is out.
_SETTLED_BY_THE_CONTAINER = (
    "answer after the effect",
    "html after the effect",
    "error_in_200 after the effect",
    "endless after the effect",
    "gzip_bomb after the effect",
    "redirect after the effect",
    "a nameless success",
)


@asynccontextmanager
async def open_facebook(
    folder: Path, clock: Clock | None = None
) -> AsyncIterator[tuple[FacebookNetwork, FacebookAdapter]]:
    async with FacebookNetwork(folder / "facebook.jsonl", clock) as network:
        origin = HttpOrigin(network.url, connections=4)
        try:
            yield network, FacebookAdapter(origin, LIMITS, media=MediaFolder(folder))
        finally:
            await origin.close()


@asynccontextmanager
async def open_instagram(
    folder: Path, clock: Clock | None = None
) -> AsyncIterator[tuple[InstagramNetwork, InstagramAdapter]]:
    async with InstagramNetwork(folder / "instagram.jsonl", clock) as network:
        origin = HttpOrigin(network.url, connections=4)
        try:
            yield network, InstagramAdapter(origin, LIMITS, media=MediaFolder(folder), clock=network.clock)
        finally:
            await origin.close()


@named("facebook")
@asynccontextmanager
async def facebook(folder: Path) -> AsyncIterator[Scene]:
    async with open_facebook(folder) as (network, adapter):
        yield Scene(network=network, adapter=adapter, post=PAGE, publish="feed", look="published_posts")


@named("facebook-photos")
@asynccontextmanager
async def facebook_photos(folder: Path) -> AsyncIterator[Scene]:
    """A page gets two photos. They are attached once, so a second request is refused."""
    media = MediaFolder(folder)
    photos = (media.add("a.jpg", b"first"), media.add("b.jpg", b"second"))
    async with open_facebook(folder) as (network, adapter):
        post = replace(PAGE, media=photos)
        yield Scene(
            network=network, adapter=adapter, post=post, publish="feed", look="published_posts", is_repeatable=True
        )


@named("facebook-video")
@asynccontextmanager
async def facebook_video(folder: Path) -> AsyncIterator[Scene]:
    async with open_facebook(folder) as (network, adapter):
        network.processing_polls = 2
        post = replace(PAGE, media=(MediaFolder(folder).add("a.mp4"),))
        yield Scene(
            network=network, adapter=adapter, post=post, publish="publish_video", look="video", is_repeatable=True
        )


@named("instagram")
@asynccontextmanager
async def instagram(folder: Path) -> AsyncIterator[Scene]:
    also: dict[str, tuple[type[Outcome], ...]] = dict.fromkeys(_SETTLED_BY_THE_CONTAINER, (Accepted,))
    async with open_instagram(folder) as (network, adapter):
        network.processing_polls = 1
        post = replace(FEED, media=(MediaFolder(folder).add("a.jpg"),))
        yield Scene(network=network, adapter=adapter, post=post, publish="media_publish", look="status", also=also)
