"""A container is published once; after an answer that is no success its state says whether the post is out."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.instagram import InstagramNetwork
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Found,
    Level,
    NoProof,
    NotSent,
    Outcome,
    Quota,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Ready
from servicekit.clock import SystemClock
from testkit.clocks import START, FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import prepared
from tests.contract.publisher_service.scenes_meta import FEED, open_instagram

Opened = tuple[InstagramNetwork, InstagramAdapter]
ID = FEED.external_account_id


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with open_instagram(tmp_path) as scene:
        yield scene


@pytest.fixture
async def ready(opened: Opened, tmp_path: Path) -> Post:
    """Returns a post that may be sent."""
    _, adapter = opened
    since = SystemClock().now() - timedelta(seconds=1)
    return await prepared(adapter, replace(FEED, since=since, media=(MediaFolder(tmp_path).add("a.jpg"),)))


@pytest.fixture
async def story(opened: Opened, ready: Post) -> Post:
    return await prepared(opened[1], replace(ready, channel="instagram_story", handle=""))


def refusal(code: int, subcode: int | None = None, *, effect: bool = False) -> Rule:
    body = {"error": {"code": code, "error_subcode": subcode, "message": "no"}}
    return Rule(fault=Fault.ANSWER, status=400, body=body, operation="media_publish", effect=effect)


async def test_a_post_has_the_address_that_instagram_gives_it(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    seen = await adapter.send(ready)
    assert isinstance(seen, Accepted)
    assert seen.external_url == f"https://www.instagram.com/p/{seen.external_id}/"
    assert [each["id"] for each in network.effects] == [seen.external_id]


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HANG, Fault.ANSWER, Fault.HTML])
async def test_a_post_whose_address_cannot_be_read_is_out_all_the_same(
    opened: Opened, ready: Post, fault: Fault
) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=fault, operation="show", count=0))
    seen = await adapter.send(ready)
    assert isinstance(seen, Accepted)
    assert seen.external_url == ""


async def test_a_refusal_of_a_post_that_is_live_is_a_success(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(refusal(4, 2207051, effect=True))
    seen = await adapter.send(ready)
    assert isinstance(seen, Accepted)
    assert [(each["id"], each["container"]) for each in network.effects] == [(seen.external_id, seen.own_id)]
    assert seen.is_by_text


async def test_the_same_refusal_holds_the_account_back_if_nothing_is_live(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(refusal(4, 2207051))
    seen = await adapter.send(ready)
    assert isinstance(seen, RateLimited), "and not a limit of the application, whose code it has"
    assert seen.level is Level.ACCOUNT
    assert seen.retry_after == timedelta(hours=6)


async def test_an_error_whose_container_cannot_be_read_is_ambiguous(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    for fault in (Fault.RESET, Fault.HANG, Fault.ANSWER, Fault.HTML):
        network.faults.clear()
        network.faults.add(refusal(36004, 2207010), Rule(fault=fault, operation="status", count=0))
        assert isinstance(await adapter.send(ready), Ambiguous)


@pytest.mark.parametrize("state", ["IN_PROGRESS", "ERROR", "EXPIRED", "", None, 5])
async def test_a_container_in_any_other_state_is_no_proof(opened: Opened, ready: Post, state: object) -> None:
    network, adapter = opened
    odd = Rule(fault=Fault.ANSWER, status=200, body={"id": "1", "status_code": state}, operation="status")
    network.faults.add(refusal(36004, 2207010), odd)
    assert isinstance(await adapter.send(ready), Ambiguous)


@pytest.mark.parametrize(
    ("code", "subcode", "expected"),
    [
        (36004, 2207010, Rejected),
        (25, 2207050, AuthRefused),
        (9, 2207042, RateLimited),
        (24, 2207006, Ambiguous),
        (24, 2207008, Ambiguous),
        (9007, 2207027, Ambiguous),
        (-1, 2207001, Ambiguous),
        (2, None, Ambiguous),
    ],
)
async def test_an_unpublished_container_leaves_the_error_as_it_is(
    opened: Opened, ready: Post, code: int, subcode: int | None, expected: type[Outcome]
) -> None:
    network, adapter = opened
    network.faults.add(refusal(code, subcode))
    assert isinstance(await adapter.send(ready), expected)
    assert await adapter.look(ready) == Absent()


async def test_a_token_that_is_over_is_not_asked_for_the_container(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(refusal(190))
    before = len(network.calls)
    assert isinstance(await adapter.send(ready), AuthRefused)
    assert len(network.calls) == before + 1


@pytest.mark.parametrize("code", [4, 17, 80002])
async def test_a_limit_whose_post_is_live_is_a_success(opened: Opened, ready: Post, code: int) -> None:
    network, adapter = opened
    network.faults.add(refusal(code, effect=True))
    seen = await adapter.send(ready)
    assert isinstance(seen, Accepted)
    assert [each["id"] for each in network.effects] == [seen.external_id]


@pytest.mark.parametrize(("code", "level"), [(4, Level.APPLICATION), (17, Level.ACCOUNT), (80002, Level.ACCOUNT)])
async def test_a_limit_is_one_if_the_container_is_not_published(
    opened: Opened, ready: Post, code: int, level: Level
) -> None:
    network, adapter = opened
    network.faults.add(refusal(code))
    seen = await adapter.send(ready)
    assert isinstance(seen, RateLimited)
    assert seen.level is level


async def test_a_limit_that_keeps_the_container_from_being_read_is_ambiguous(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    limit = refusal(4)
    network.faults.add(limit, replace(limit, operation="status", count=0))
    seen = await adapter.send(ready)
    assert isinstance(seen, Ambiguous)
    assert seen.quotas == (Quota(level=Level.APPLICATION, remaining=0, reset_after=timedelta(hours=1)),), "others wait"


async def test_a_published_container_whose_post_is_not_certain_is_not_guessed(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.NAMELESS, effect=True, operation="media_publish"))
    network.write(ID, ready.text)
    assert isinstance(await adapter.send(ready), Ambiguous)
    (container,) = network.containers
    assert await adapter.look(ready) == Found(external_id=container, external_url="")


async def test_the_newest_post_is_never_taken_for_it(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.NAMELESS, effect=True, operation="media_publish"))
    await adapter.send(ready)
    network.write(ID, "something else, and newer")
    seen = await adapter.look(ready)
    assert isinstance(seen, Found)
    assert [(seen.external_id, seen.own_id)] == [(each["id"], each["container"]) for each in network.effects]
    assert seen.is_by_text, "another post of the account may have the text"


async def test_a_story_is_known_by_its_container(opened: Opened, story: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="media_publish"))
    assert isinstance(await adapter.send(story), Ambiguous)
    network.write(ID, story.text)
    seen = await adapter.look(story)
    (effect,) = network.effects
    assert seen == Found(external_id=effect["container"], external_url="")
    assert (effect["channel"], effect["text"]) == ("instagram_story", "")


async def test_a_list_that_cannot_be_read_leaves_the_container_as_proof(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="media_publish"))
    await adapter.send(ready)
    network.faults.add(Rule(fault=Fault.ANSWER, operation="media"))
    assert isinstance(await adapter.look(ready), Found)


async def test_a_look_without_a_container_proves_nothing(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    before = len(network.calls)
    assert isinstance(await adapter.look(replace(ready, handle="")), NoProof)
    assert isinstance(await adapter.send(replace(ready, handle="")), NotSent)
    assert len(network.calls) == before


async def test_a_container_that_is_over_has_to_be_made_again(tmp_path: Path) -> None:
    clock = FrozenClock()
    async with open_instagram(tmp_path, clock) as (_, adapter):
        ready = await prepared(adapter, replace(FEED, since=START, media=(MediaFolder(tmp_path).add("a.jpg"),)))
        clock.advance(timedelta(hours=24))
        assert await adapter.look(ready) == Absent(handle_is_void=True)


async def test_the_quota_is_that_of_the_account(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    network.quota_total = 0
    seen = await adapter.send(ready)
    assert isinstance(seen, RateLimited)
    assert seen.level is Level.ACCOUNT, "posts and stories count together"
    assert seen.retry_after == timedelta(hours=1)


async def test_the_last_post_of_a_day_says_that_no_more_may_follow(opened: Opened, tmp_path: Path) -> None:
    network, adapter = opened
    network.quota_total = 2
    left: list[Quota] = []
    for _ in range(2):
        post = await prepared(adapter, replace(FEED, media=(MediaFolder(tmp_path).add("a.jpg"),)))
        seen = await adapter.send(post)
        assert isinstance(seen, Accepted)
        left += seen.quotas
    assert left == [
        Quota(level=Level.ACCOUNT, remaining=1, reset_after=timedelta(hours=24)),
        Quota(level=Level.ACCOUNT, remaining=0, reset_after=timedelta(hours=1)),
    ]


async def test_a_published_container_is_not_published_again(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    first, second = await adapter.send(ready), await adapter.send(ready)
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.external_id == second.external_id
    assert len(network.effects) == 1


async def test_a_comment_is_put_below_the_post_and_found_there(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    sent = await adapter.send(ready)
    assert isinstance(sent, Accepted)
    comment = replace(ready, text="first!", follows=sent.external_id, media=(), handle="")
    prepared_comment = await adapter.prepare(comment)
    assert isinstance(prepared_comment, Ready)
    comment = replace(comment, handle=prepared_comment.handle)
    assert await adapter.look(comment) == Absent()
    network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="comment"))
    assert isinstance(await adapter.send(comment), Ambiguous)
    seen = await adapter.look(comment)
    assert isinstance(seen, Found)
    assert seen.is_by_text
    assert network.effects_of(id=seen.external_id, follows=sent.external_id, text="first!")


async def test_the_same_comment_of_a_stranger_proves_nothing(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    sent = await adapter.send(ready)
    assert isinstance(sent, Accepted)
    comment = replace(ready, text="Link in bio", follows=sent.external_id, media=(), handle="text")
    network.comment_as("999", sent.external_id, comment.text)
    assert isinstance(await adapter.look(comment), NoProof)
    own = await adapter.send(comment)
    assert isinstance(own, Accepted)
    seen = await adapter.look(comment)
    assert isinstance(seen, Found)
    assert seen.external_id == own.external_id


async def test_a_comment_below_a_container_is_refused(opened: Opened, ready: Post) -> None:
    network, adapter = opened
    (container,) = network.containers
    comment = replace(ready, text="first!", follows=container, media=(), handle="text")
    assert isinstance(await adapter.send(comment), Rejected)
    network.faults.add(Rule(fault=Fault.RATE_LIMIT, operation="comment", seconds=60))
    assert isinstance(await adapter.send(comment), RateLimited)


@pytest.mark.parametrize("operation", ["comment", "comments"])
async def test_a_comment_that_is_not_allowed_disconnects_nobody(opened: Opened, ready: Post, operation: str) -> None:
    network, adapter = opened
    body = {"error": {"code": 10, "message": "Application does not have permission for this action"}}
    network.faults.add(Rule(fault=Fault.ANSWER, operation=operation, status=400, body=body))
    comment = replace(ready, text="first!", follows="17000000000000001", media=(), handle="text")
    if operation == "comments":
        assert isinstance(await adapter.look(comment), NoProof)
        return
    seen = await adapter.send(comment)
    assert isinstance(seen, Rejected)
    assert seen.reason == "COMMENTS_NOT_ALLOWED"
