"""Media of LinkedIn: uploaded one by one, processed, and shown in one post."""

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from publisher_service.adapters.providers.adapter import Post
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.outcome import Accepted, NotSent
from publisher_service.domain.preparation import (
    CredentialsInvalid,
    Delayed,
    Preparing,
    Processing,
    Ready,
    Unfit,
    Void,
)
from tests.contract.publisher_service.linkedin_rig import LinkedInRig, linkedin_rig

SECONDS = timedelta(seconds=1)


@pytest.fixture(params=[False, True], ids=["member", "page"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LinkedInRig]:
    async with linkedin_rig(tmp_path, is_page=request.param) as opened:
        yield opened


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[LinkedInRig]:
    async with linkedin_rig(tmp_path, is_page=True) as opened:
        yield opened


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def step(rig: LinkedInRig, post: Post) -> Preparing:
    return await (rig.adapter.check(post) if post.handle else rig.adapter.prepare(post))


async def ready(rig: LinkedInRig, post: Post, *, most: int = 40) -> Post:
    """Goes on until the post is ready; while LinkedIn works at it, time passes."""
    for _ in range(most):
        seen = await step(rig, post)
        if isinstance(seen, Ready):
            return replace(post, handle=seen.handle)
        assert isinstance(seen, Processing), seen
        if seen.handle == post.handle:
            rig.clock.advance(5 * SECONDS)
        post = replace(post, handle=seen.handle)
    raise AssertionError("never ready")


async def test_a_picture_is_shown_with_its_description(rig: LinkedInRig) -> None:
    picture = replace(rig.media.add("a.jpg", b"picture"), alt_text="A cat")
    assert isinstance(await rig.adapter.send(await ready(rig, rig.post(media=(picture,)))), Accepted)
    (effect,) = rig.network.effects
    assert effect["media"] == [digest(b"picture")]
    content = rig.network.posts[0].content
    assert content == {"media": {"id": next(iter(rig.network.uploads)), "altText": "A cat"}}


async def test_pictures_keep_their_order(rig: LinkedInRig) -> None:
    names = [f"{number}.jpg" for number in range(20)]
    post = await ready(rig, rig.post(media=tuple(rig.media.add(name, name.encode()) for name in names)))
    assert len(post.handle) < 8000
    assert isinstance(await rig.adapter.send(post), Accepted)
    assert rig.network.effects[0]["media"] == [digest(name.encode()) for name in names]


async def test_a_video_is_uploaded_in_parts(rig: LinkedInRig) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(9 * 256 * 1024)) + b"end"
    post = rig.post(media=(rig.media.add("a.mp4", data),), title="A film")
    post = await ready(rig, post)
    assert isinstance(await rig.adapter.send(post), Accepted)
    (effect,) = rig.network.effects
    (upload,) = rig.network.uploads.values()
    assert [len(part) for _, part in sorted(upload.parts.items())] == [4 << 20, 4 << 20, (1 << 20) + 3]
    assert effect["media"] == [digest(data)]
    assert effect["id"].startswith("urn:li:ugcPost:")
    assert rig.network.posts[0].content == {"media": {"id": upload.urn, "title": "A film"}}


@pytest.mark.parametrize(("title", "shown"), [("Report", "Report"), ("", "Document")])
async def test_a_document_has_a_title(rig: LinkedInRig, title: str, shown: str) -> None:
    post = await ready(rig, rig.post(media=(rig.media.add("a.pdf", b"%PDF"),), title=title))
    assert isinstance(await rig.adapter.send(post), Accepted)
    assert rig.network.posts[0].content["media"]["title"] == shown


async def test_beside_media_a_link_is_part_of_the_text(rig: LinkedInRig) -> None:
    post = rig.post("Look", media=(rig.media.add("a.jpg", b"picture"),), link="https://example.com/a_b")
    await rig.adapter.send(await ready(rig, post))
    (effect,) = rig.network.effects
    assert (effect["text"], effect["link"]) == ("Look\n\nhttps://example.com/a_b", "")


async def test_a_member_waits_for_what_it_cannot_ask_about(tmp_path: Path) -> None:
    async with linkedin_rig(tmp_path) as rig:
        post = rig.post(media=(rig.media.add("a.jpg", b"picture"),))
        uploaded = await step(rig, post)
        assert isinstance(uploaded, Processing)
        post = replace(post, handle=uploaded.handle)
        rig.clock.advance(14 * SECONDS)
        assert await step(rig, post) == uploaded
        rig.clock.advance(SECONDS)
        assert await step(rig, post) == Ready(handle=uploaded.handle)
        assert "upload.get" not in rig.requests


async def test_a_page_asks_until_its_media_can_be_shown(page: LinkedInRig) -> None:
    page.network.processing = timedelta(minutes=2)
    post = page.post(media=(page.media.add("a.jpg", b"picture"),))
    began = page.clock.now()
    post = await ready(page, post)
    assert page.clock.now() - began >= timedelta(minutes=2)
    assert isinstance(await page.adapter.send(post), Accepted)


async def test_media_that_a_post_may_not_show_yet_are_not_sent(tmp_path: Path) -> None:
    async with linkedin_rig(tmp_path) as rig:
        rig.network.processing = timedelta(minutes=2)
        post = await ready(rig, rig.post(media=(rig.media.add("a.jpg", b"picture"),)))
        seen = await rig.adapter.send(post)
        assert isinstance(seen, NotSent)
        assert seen.reason == "MEDIA_ASSET_WAITING_UPLOAD"
        rig.clock.advance(timedelta(minutes=2))
        assert isinstance(await rig.adapter.send(post), Accepted)


async def test_a_failed_processing_begins_the_preparation_again(page: LinkedInRig) -> None:
    page.network.media_fail = True
    post = page.post(media=(page.media.add("a.mp4", b"film"),))
    uploaded = await step(page, post)
    assert isinstance(uploaded, Processing)
    assert isinstance(await step(page, replace(post, handle=uploaded.handle)), Void)


@pytest.mark.parametrize("handle", ["text", "{}", '{"urns":[],"uploaded":1}', '{"urns":["a"],"uploaded":1}', "[]"])
async def test_a_handle_that_says_nothing_is_void(page: LinkedInRig, handle: str) -> None:
    post = page.post(media=(page.media.add("a.jpg", b"picture"),), handle=handle)
    assert isinstance(await page.adapter.check(post), Void)
    assert isinstance(await page.adapter.send(post), NotSent), "never without its media"
    assert page.network.effects == []


async def test_only_pictures_go_together(rig: LinkedInRig) -> None:
    first, film = rig.media.add("a.jpg", b"picture"), rig.media.add("a.mp4", b"film")
    post = rig.post(media=(first, film))
    uploaded = await step(rig, post)
    assert isinstance(uploaded, Processing)
    assert isinstance(await step(rig, replace(post, handle=uploaded.handle)), Unfit)
    assert isinstance(await step(rig, rig.post(media=(film, first))), Unfit)


async def test_changed_or_missing_media_are_called_so(page: LinkedInRig) -> None:
    picture = page.media.add("a.jpg", b"picture")
    (page.media.folder / "a.jpg").write_bytes(b"another")
    changed = await step(page, page.post(media=(picture,)))
    assert isinstance(changed, Unfit)
    assert changed.reason == "MEDIA_CHANGED"
    page.media.away.add("a.jpg")
    assert isinstance(await step(page, page.post(media=(picture,))), Delayed)
    assert page.network.uploads == {}


UNSURE: dict[str, Rule] = {
    "nothing": Rule(fault=Fault.RESET),
    "an error": Rule(fault=Fault.ANSWER, status=500),
    "a page": Rule(fault=Fault.HTML),
    "no name": Rule(fault=Fault.NAMELESS),
    "a limit": Rule(fault=Fault.RATE_LIMIT),
}


@pytest.mark.parametrize("operation", ["upload", "bytes", "upload.get"])
@pytest.mark.parametrize("case", UNSURE)
async def test_a_step_without_a_certain_answer_is_tried_again(page: LinkedInRig, case: str, operation: str) -> None:
    post = page.post(media=(page.media.add("a.jpg", b"picture"),))
    if operation == "upload.get":
        uploaded = await step(page, post)
        assert isinstance(uploaded, Processing)
        post = replace(post, handle=uploaded.handle)
    page.network.faults.add(replace(UNSURE[case], operation=operation, count=0))
    seen = await step(page, post)
    page.network.faults.clear()
    # A page of HTML with the status of a success is one: what counts of an upload is its status.
    assert isinstance(seen, Processing if (operation, case) in {("bytes", "a page"), ("bytes", "no name")} else Delayed)
    await page.adapter.send(await ready(page, post))
    assert len(page.network.effects) == 1


async def test_a_refused_token_stops_the_preparation(page: LinkedInRig) -> None:
    post = page.post(media=(page.media.add("a.jpg", b"picture"),), access_token="revoked-5f0c91d2")
    assert isinstance(await step(page, post), CredentialsInvalid)


def begun(url: str) -> Rule:
    body = {"value": {"uploadUrl": url, "image": "urn:li:image:1"}}
    return Rule(fault=Fault.ANSWER, operation="upload", status=200, body=body)


FOREIGN = (
    "https://evil.example/dms-uploads/1",
    "http://www.linkedin.com/dms-uploads/1",
    "https://www.linkedin.com:8443/dms-uploads/1",
    "https://linkedin.com.evil.example/1",
    "https://evil.example\\.linkedin.com/1",
    "https://evillinkedin.com/1",
    "https://www.linkedin.com@evil.example/1",
    "https://[::1/1",
    "http://127.0.0.1:1/1",
    "ftp://www.linkedin.com/1",
    "https://www.linkedin.com/a\r\nHost: evil.example",
    "",
)


@pytest.mark.parametrize("url", FOREIGN)
async def test_bytes_and_tokens_go_to_no_other_server(page: LinkedInRig, url: str) -> None:
    page.network.faults.add(begun(url))
    seen = await step(page, page.post(media=(page.media.add("a.jpg", b"picture"),)))
    assert isinstance(seen, Delayed)
    assert (page.requests, page.connected) == (["upload"], [])


async def test_bytes_go_to_servers_of_linkedin(rig: LinkedInRig) -> None:
    post = rig.post(media=(rig.media.add("a.jpg", b"picture"), rig.media.add("b.jpg", b"other")))
    await rig.adapter.prepare(post)
    (first,) = rig.network.uploads
    body = {"value": {"uploadUrl": f"https://www.linkedin.com/dms-uploads/{first}/1?a=b", "image": first}}
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="upload", status=200, body=body))
    handle = json.dumps({"urns": [first], "uploaded": 1})
    assert isinstance(await rig.adapter.check(replace(post, handle=handle)), Processing)
    assert rig.connected == ["https://www.linkedin.com"]
    assert rig.network.uploads[first].parts[1] == b"other"


BAD_PARTS: list[Any] = [
    [],
    {},
    [{"uploadUrl": "u", "firstByte": 1, "lastByte": 3}],
    [{"uploadUrl": "u", "firstByte": 0, "lastByte": 2}],
    [{"uploadUrl": "u", "firstByte": 0, "lastByte": 1}, {"uploadUrl": "u", "firstByte": 1, "lastByte": 3}],
    [{"uploadUrl": "u", "firstByte": 0, "lastByte": 9}],
    [{"uploadUrl": None, "firstByte": 0, "lastByte": 3}],
    [None],
]


@pytest.mark.parametrize("parts", BAD_PARTS)
async def test_parts_that_are_not_the_file_are_not_uploaded(page: LinkedInRig, parts: Any) -> None:
    body = {"value": {"video": "urn:li:video:1", "uploadToken": "t", "uploadInstructions": parts}}
    page.network.faults.add(Rule(fault=Fault.ANSWER, operation="upload", status=200, body=body))
    film: ContentMedia = page.media.add("a.mp4", b"film")
    assert isinstance(await step(page, page.post(media=(film,))), Delayed)
    assert page.requests == ["upload"]


async def test_a_file_that_shrinks_meanwhile_is_not_uploaded(page: LinkedInRig) -> None:
    page.media.short.add("a.jpg")
    assert isinstance(await step(page, page.post(media=(page.media.add("a.jpg", b"picture"),))), Delayed)
