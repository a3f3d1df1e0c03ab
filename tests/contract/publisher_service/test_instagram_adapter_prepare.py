"""A container is made in steps that are stored one by one, from media whose bytes were just checked."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.instagram import InstagramNetwork
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Preparing, Processing, Ready, Unfit, Void
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import prepared
from tests.contract.publisher_service.scenes_meta import FEED, open_instagram

Opened = tuple[InstagramNetwork, InstagramAdapter]


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def opened(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Opened]:
    async with open_instagram(tmp_path, clock) as scene:
        yield scene


@pytest.fixture
def media(tmp_path: Path) -> MediaFolder:
    return MediaFolder(tmp_path)


@pytest.fixture
def picture(media: MediaFolder) -> Post:
    return replace(FEED, media=(media.add("a.jpg", b"1", "a cat"),))


async def begun(adapter: InstagramAdapter, post: Post) -> Post:
    step = await adapter.prepare(post)
    assert isinstance(step, Processing), step
    return replace(post, handle=step.handle)


async def test_a_picture_is_one_container_and_its_quota_is_read(opened: Opened, picture: Post) -> None:
    network, adapter = opened
    await prepared(adapter, picture)
    assert [name for name, _ in network.calls] == ["container", "status", "limit"]
    (container,) = network.containers.values()
    assert (container.kind, container.caption, container.urls) == ("IMAGE", "hello", ["https://media.example/a.jpg"])
    assert network.effects == []


@pytest.mark.parametrize(
    ("channel", "name", "kind", "caption"),
    [
        ("instagram_feed", "a.mp4", "REELS", "hello"),
        ("instagram_story", "a.mp4", "STORIES", ""),
        ("instagram_story", "a.jpg", "STORIES", ""),
    ],
)
async def test_videos_are_reels_and_stories_have_no_caption(
    opened: Opened, media: MediaFolder, channel: str, name: str, kind: str, caption: str
) -> None:
    network, adapter = opened
    await prepared(adapter, replace(FEED, channel=channel, media=(media.add(name),)))
    (container,) = network.containers.values()
    assert (container.kind, container.caption) == (kind, caption)


async def test_a_carousel_is_made_when_all_its_parts_are_finished(
    opened: Opened, media: MediaFolder, clock: FrozenClock
) -> None:
    network, adapter = opened
    network.processing_seconds = 60
    post = replace(FEED, media=(media.add("a.jpg", b"1"), media.add("b.mp4", b"2"), media.add("c.jpg", b"3")))
    handles = []
    post = await begun(adapter, post)
    for _ in range(2):
        step = await adapter.check(post)
        assert isinstance(step, Processing)
        handles.append(step.handle)
        post = replace(post, handle=step.handle)
    assert len(set(handles)) == 2, "each part is stored before the next one is made"
    assert await adapter.check(post) == Processing(handle=post.handle), "the parts are not finished"
    clock.advance(timedelta(seconds=60))
    parent = await adapter.check(post)
    assert isinstance(parent, Processing)
    assert parent.handle != post.handle
    post = replace(post, handle=parent.handle)
    assert await adapter.check(post) == Processing(handle=post.handle)
    clock.advance(timedelta(seconds=60))
    assert isinstance(await adapter.check(post), Ready)
    *_, carousel = network.containers.values()
    assert [network.containers[each].kind for each in carousel.children] == ["IMAGE", "VIDEO", "IMAGE"]
    assert all(network.containers[each].caption == "" for each in carousel.children)
    assert network.problems == []


async def test_each_part_is_checked_right_before_its_container_is_made(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    post = await begun(adapter, replace(FEED, media=(media.add("a.jpg", b"1"), media.add("b.jpg", b"2"))))
    media.add("b.jpg", b"replaced after the first part was made")
    seen = await adapter.check(post)
    assert isinstance(seen, Unfit)
    assert seen.reason == "MEDIA_CHANGED"
    assert len(network.containers) == 1


@pytest.mark.parametrize(
    ("subcode", "expected"),
    [(2207026, Unfit), (2207053, Void), (2207001, Void), (2299999, Void), (7, Void)],
)
async def test_a_container_that_fails_says_whether_to_try_again(
    opened: Opened, picture: Post, subcode: int, expected: type[Preparing]
) -> None:
    network, adapter = opened
    network.processing_error = subcode
    seen = await adapter.check(await begun(adapter, picture))
    assert isinstance(seen, expected), seen


async def test_a_container_of_yesterday_is_void(opened: Opened, picture: Post, clock: FrozenClock) -> None:
    _, adapter = opened
    post = await begun(adapter, picture)
    clock.advance(timedelta(hours=24))
    seen = await adapter.check(post)
    assert isinstance(seen, Void)
    assert adapter.limits.handle_life <= timedelta(hours=23)


async def test_a_wrong_answer_that_a_container_is_missing_is_asked_again(opened: Opened, picture: Post) -> None:
    network, adapter = opened
    post = await begun(adapter, picture)
    spurious = Rule(
        fault=Fault.ANSWER, status=400, body={"error": {"code": 100, "error_subcode": 33}}, operation="status"
    )
    network.faults.add(spurious)
    assert isinstance(await adapter.check(post), Ready)
    network.faults.add(replace(spurious, count=2))
    assert isinstance(await adapter.check(post), Delayed)


async def test_a_used_up_quota_delays_the_post_before_it_is_sent(
    opened: Opened, picture: Post, clock: FrozenClock
) -> None:
    network, adapter = opened
    network.quota_total = 1
    await adapter.send(await prepared(adapter, picture))
    post = await begun(adapter, picture)
    seen = await adapter.check(post)
    assert isinstance(seen, Delayed)
    assert seen.retry_after == timedelta(minutes=15)
    network.containers[[*network.containers][-1]].made += timedelta(hours=24)
    clock.advance(timedelta(hours=24))
    assert isinstance(await adapter.check(post), Ready), "the first post has left the window"


async def test_a_quota_that_cannot_be_read_stops_nothing(opened: Opened, picture: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.ANSWER, operation="limit"))
    assert isinstance(await adapter.check(await begun(adapter, picture)), Ready)
    network.faults.add(Rule(fault=Fault.ANSWER, status=200, body={"data": []}, operation="limit"))
    assert isinstance(await adapter.check(await begun(adapter, picture)), Ready)


async def test_media_is_required(opened: Opened) -> None:
    network, adapter = opened
    assert isinstance(await adapter.prepare(FEED), Unfit)
    assert network.calls == []


async def test_a_story_has_one_picture(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    two = (media.add("a.jpg"), media.add("b.jpg"))
    assert isinstance(await adapter.prepare(replace(FEED, channel="instagram_story", media=two)), Unfit)
    assert network.calls == []


async def test_a_document_is_no_post(opened: Opened, media: MediaFolder) -> None:
    _, adapter = opened
    assert isinstance(await adapter.prepare(replace(FEED, media=(media.add("a.pdf"),))), Unfit)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": 190, "error_subcode": 460}, CredentialsInvalid),
        ({"code": 9004, "error_subcode": 2207052}, Void),
        ({"code": 36003, "error_subcode": 2207009}, Unfit),
        ({"code": 80002}, Delayed),
        ({"code": 2}, Delayed),
        ({"code": 100, "error_subcode": 33}, Void),
    ],
)
async def test_a_refused_container_says_what_to_do(
    opened: Opened, picture: Post, error: dict[str, int], expected: type[Preparing]
) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.ANSWER, status=400, body={"error": error}))
    assert isinstance(await adapter.prepare(picture), expected)


async def test_a_container_whose_name_is_lost_is_made_again(opened: Opened, picture: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.NAMELESS, effect=True, operation="container"))
    assert isinstance(await adapter.prepare(picture), Delayed)
    assert isinstance(await adapter.prepare(picture), Processing)
    assert network.effects == []
