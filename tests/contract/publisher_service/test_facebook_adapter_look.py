"""A look at a page accepts only proof: all pages of the list, the very text or our own media, exactly once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault, Rule
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.domain.outcome import Absent, Accepted, AuthRefused, Found, NoProof
from servicekit.clock import SystemClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import prepared
from tests.contract.publisher_service.scenes_meta import PAGE, open_facebook

Opened = tuple[FacebookNetwork, FacebookAdapter]
ID = PAGE.external_account_id


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with open_facebook(tmp_path) as scene:
        yield scene


@pytest.fixture
def post() -> Post:
    return replace(PAGE, since=SystemClock().now() - timedelta(seconds=1))


@pytest.fixture
def photo_post(post: Post, tmp_path: Path) -> Post:
    return replace(post, media=(MediaFolder(tmp_path).add("a.jpg"), MediaFolder(tmp_path).add("b.jpg", b"2")))


async def test_a_post_is_found_on_a_later_page_of_the_list(opened: Opened, post: Post) -> None:
    network, adapter = opened
    await adapter.send(post)
    for number in range(25):
        network.write(ID, f"other {number}")
    assert isinstance(await adapter.look(post), Found)
    assert network.calls.count(("published_posts", ID)) == 3
    assert network.problems == [], "the next page's address, which has a token in it, was followed"


async def test_a_list_that_has_no_end_proves_nothing(opened: Opened, post: Post) -> None:
    network, adapter = opened
    for number in range(101):
        network.write(ID, f"other {number}")
    assert isinstance(await adapter.look(post), NoProof)


async def test_a_list_that_breaks_off_proves_nothing(opened: Opened, post: Post) -> None:
    network, adapter = opened
    for number in range(11):
        network.write(ID, f"other {number}")
    network.faults.add(Rule(fault=Fault.RESET, operation="published_posts", skip=1, count=0))
    assert isinstance(await adapter.look(post), NoProof)


async def test_the_same_text_of_somebody_else_makes_two(opened: Opened, post: Post) -> None:
    network, adapter = opened
    await adapter.send(post)
    network.write(ID, post.text)
    assert isinstance(await adapter.look(post), NoProof)


async def test_photos_tell_two_posts_of_one_text_apart(opened: Opened, photo_post: Post) -> None:
    network, adapter = opened
    ready = await prepared(adapter, photo_post)
    sent = await adapter.send(ready)
    network.write(ID, photo_post.text, ["1200000009"])
    assert isinstance(sent, Accepted)
    seen = await adapter.look(ready)
    assert isinstance(seen, Found)
    assert seen.external_id == sent.external_id


async def test_a_post_of_photos_alone_is_found_by_them(opened: Opened, photo_post: Post) -> None:
    network, adapter = opened
    ready = await prepared(adapter, replace(photo_post, text=""))
    assert await adapter.look(ready) == Absent()
    await adapter.send(ready)
    assert isinstance(await adapter.look(ready), Found)
    network.hides_attachments = True
    assert await adapter.look(replace(ready, handle="text")) == NoProof(
        message="nothing is known by which the post could be recognized"
    )


async def test_without_a_text_nothing_is_looked_for(opened: Opened, post: Post) -> None:
    network, adapter = opened
    assert isinstance(await adapter.look(replace(post, text="")), NoProof)
    assert isinstance(await adapter.look(replace(post, since=None)), NoProof)
    assert network.calls == []


async def test_a_video_is_found_by_its_own_state(opened: Opened, post: Post, tmp_path: Path) -> None:
    network, adapter = opened
    ready = await prepared(adapter, replace(post, text="", media=(MediaFolder(tmp_path).add("a.mp4"),)))
    assert await adapter.look(ready) == Absent()
    await adapter.send(ready)
    seen = await adapter.look(ready)
    assert isinstance(seen, Found)
    assert [seen.external_id] == [each["id"] for each in network.effects]


async def test_a_video_that_is_gone_has_to_be_uploaded_again(opened: Opened, post: Post, tmp_path: Path) -> None:
    network, adapter = opened
    ready = await prepared(adapter, replace(post, media=(MediaFolder(tmp_path).add("a.mp4"),)))
    (video,) = network.videos.values()
    video.error = "expired"
    assert await adapter.look(ready) == Absent(handle_is_void=True)
    network.videos.clear()
    assert isinstance(await adapter.look(ready), NoProof), "it may have been published and deleted"


async def test_a_wrong_answer_that_something_is_missing_is_asked_again(opened: Opened, post: Post) -> None:
    network, adapter = opened
    await adapter.send(post)
    spurious = Rule(fault=Fault.ANSWER, status=400, body={"error": {"code": 100, "error_subcode": 33}})
    network.faults.add(spurious)
    assert isinstance(await adapter.look(post), Found)
    network.faults.add(replace(spurious, count=2))
    assert isinstance(await adapter.look(post), NoProof)


async def test_a_token_that_is_over_is_called_so(opened: Opened, post: Post) -> None:
    _, adapter = opened
    assert isinstance(await adapter.look(replace(post, access_token="stolen-token")), AuthRefused)


async def test_a_comment_is_found_among_those_of_its_post(opened: Opened, post: Post) -> None:
    network, adapter = opened
    sent = await adapter.send(post)
    assert isinstance(sent, Accepted)
    comment = replace(post, text="first!", follows=sent.external_id)
    assert await adapter.look(comment) == Absent()
    network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="comment"))
    await adapter.send(comment)
    seen = await adapter.look(comment)
    assert isinstance(seen, Found)
    assert network.effects_of(id=seen.external_id, text="first!")


async def test_the_same_comment_of_somebody_else_is_another(opened: Opened, post: Post) -> None:
    network, adapter = opened
    sent = await adapter.send(post)
    assert isinstance(sent, Accepted)
    comment = replace(post, text="Link in bio", follows=sent.external_id)
    network.comment_as("999", sent.external_id, comment.text)
    assert await adapter.look(comment) == Absent()
    network.comment_as("", sent.external_id, comment.text)
    assert isinstance(await adapter.look(comment), NoProof), "it may be this one"


async def test_comments_that_may_not_be_read_prove_nothing(opened: Opened, post: Post) -> None:
    network, adapter = opened
    denied = Rule(fault=Fault.ANSWER, status=403, body={"error": {"code": 10, "message": "no"}}, count=0)
    network.faults.add(replace(denied, operation="comments"), replace(denied, operation="published_posts"))
    assert isinstance(await adapter.look(replace(post, follows="100200_1")), NoProof)
    assert isinstance(await adapter.look(post), AuthRefused)


async def test_a_comment_on_a_video_is_found_too(opened: Opened, post: Post, tmp_path: Path) -> None:
    _, adapter = opened
    sent = await adapter.send(await prepared(adapter, replace(post, media=(MediaFolder(tmp_path).add("a.mp4"),))))
    assert isinstance(sent, Accepted)
    comment = replace(post, text="first!", follows=sent.external_id)
    assert isinstance(await adapter.send(comment), Accepted)
    assert isinstance(await adapter.look(comment), Found)
