"""The adapter of the listing surface takes one post for proof: of the account, of the text, not older."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox_lookup import SandboxLookupAdapter
from publisher_service.domain.outcome import Absent, Accepted, Found, NoProof, Rejected
from servicekit.clock import SystemClock
from tests.contract.publisher_service.sandbox import LIMITS, POST


@pytest.fixture
async def adapter(sandbox: Sandbox) -> AsyncIterator[SandboxLookupAdapter]:
    origin = HttpOrigin(sandbox.url, connections=8)
    yield SandboxLookupAdapter(origin, LIMITS)
    await origin.close()


@pytest.fixture
def post() -> Post:
    return replace(POST, since=SystemClock().now())


async def test_one_of_many_posts_is_recognized(adapter: SandboxLookupAdapter, post: Post) -> None:
    sent = [await adapter.send(replace(post, text=f"text {number}")) for number in range(5)]
    await adapter.send(replace(post, text="text 2", channel="instagram_feed"))
    await adapter.send(replace(post, text="text 2", destination="wall"))
    await adapter.send(replace(post, text="text 2", external_account_id="other"))
    seen = await adapter.look(replace(post, text="text 2"))
    assert isinstance(seen, Found)
    assert isinstance(sent[2], Accepted)
    assert seen.external_id == sent[2].external_id


async def test_two_posts_with_the_text_prove_nothing(adapter: SandboxLookupAdapter, post: Post) -> None:
    for _ in range(2):
        await adapter.send(post)
    assert isinstance(await adapter.look(post), NoProof)


async def test_a_post_from_before_the_first_request_is_another_one(adapter: SandboxLookupAdapter, post: Post) -> None:
    await adapter.send(post)
    assert post.since is not None
    later = replace(post, since=post.since + timedelta(minutes=2))
    assert await adapter.look(later) == Absent()


async def test_more_posts_than_a_page_shows_prove_nothing(adapter: SandboxLookupAdapter, post: Post) -> None:
    for number in range(101):
        await adapter.send(replace(post, text=f"text {number}"))
    assert isinstance(await adapter.look(replace(post, text="text 100")), NoProof)


@pytest.mark.parametrize("change", [{"text": ""}, {"since": None}], ids=["no text", "no time"])
async def test_a_look_without_what_it_needs_proves_nothing(
    adapter: SandboxLookupAdapter, post: Post, change: dict[str, None]
) -> None:
    assert isinstance(await adapter.look(replace(post, **change)), NoProof)  # type: ignore[arg-type]


async def test_a_post_that_is_not_visible_yet_is_absent(
    adapter: SandboxLookupAdapter, control: SandboxClient, post: Post
) -> None:
    """The settle time has to be longer than this lag; ADR 52 says how it is chosen."""
    await control.account("ext-page", visibility_lag=60)
    await adapter.send(post)
    assert await adapter.look(post) == Absent()


@pytest.mark.parametrize("ghost", [False, True])
async def test_a_duplicate_that_is_refused_has_put_nothing_out(
    adapter: SandboxLookupAdapter, control: SandboxClient, post: Post, ghost: bool
) -> None:
    await adapter.send(post)
    await control.faults({"fault": "duplicate", "ghost": ghost, "count": 1})
    seen = await adapter.send(post)
    assert isinstance(seen, Rejected)
    assert seen.reason == "DUPLICATE_POST"
    assert len(control.effects()) == 1
