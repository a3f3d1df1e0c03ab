"""A post of a page: uploads that nobody sees, one request that publishes, and answers that say what it did."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault, Rule
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted, AuthRefused, Level, NotSent, RateLimited, Rejected
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Processing, Ready, Unfit, Void
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import prepared
from tests.contract.publisher_service.scenes_meta import PAGE, open_facebook

Opened = tuple[FacebookNetwork, FacebookAdapter]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with open_facebook(tmp_path) as scene:
        yield scene


@pytest.fixture
def media(tmp_path: Path) -> MediaFolder:
    return MediaFolder(tmp_path)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_a_text_is_ready_without_a_request(opened: Opened) -> None:
    network, adapter = opened
    assert isinstance(await adapter.prepare(PAGE), Ready)
    assert network.calls == []


async def test_a_link_goes_with_a_text_and_not_with_media(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    await adapter.send(replace(PAGE, link="https://example.com/a?b=c&d"))
    await adapter.send(await prepared(adapter, replace(PAGE, link="https://example.com", media=(media.add("a.jpg"),))))
    assert [each["link"] for each in network.effects] == ["https://example.com/a?b=c&d", ""]


async def test_photos_are_uploaded_one_by_one_and_attached(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    cat, dog = media.add("a.jpg", b"1" * 5000, "a cat"), media.add("c.jpg", b"3", "a dog\r\n--x")
    photos = (cat, media.add("b.png", b"2"), dog)
    post = replace(PAGE, text="Grüße & mehr 👋", media=photos)
    first = await adapter.prepare(post)
    assert isinstance(first, Processing)
    post = await prepared(adapter, post)
    assert network.effects == [], "nothing of a preparation is visible"
    seen = await adapter.send(post)
    assert isinstance(seen, Accepted)
    assert seen.external_url == f"https://www.facebook.com/{seen.external_id}"
    (effect,) = network.effects
    assert effect["text"] == post.text
    assert effect["media"] == [sha256(b"1" * 5000), sha256(b"2"), sha256(b"3")]
    assert effect["alt_texts"] == ["a cat", "", "a dog\r\n--x"]
    assert network.problems == []


async def test_a_video_is_published_when_it_is_processed(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    network.processing_polls = 1
    post = replace(PAGE, media=(media.add("a.mp4", b"v" * 3000),))
    step = await adapter.prepare(post)
    assert isinstance(step, Processing)
    assert await adapter.check(replace(post, handle=step.handle)) == step
    assert await adapter.check(replace(post, handle=step.handle)) == Ready(handle=step.handle)
    seen = await adapter.send(replace(post, handle=step.handle))
    assert isinstance(seen, Accepted)
    (effect,) = network.effects
    assert (effect["id"], effect["text"], effect["media"]) == (seen.external_id, "hello", [sha256(b"v" * 3000)])


async def test_a_video_that_cannot_be_processed_is_void(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    network.processing_error = "error"
    post = replace(PAGE, media=(media.add("a.mp4"),))
    step = await adapter.prepare(post)
    assert isinstance(step, Processing)
    assert isinstance(await adapter.check(replace(post, handle=step.handle)), Void)


async def test_videos_and_photos_do_not_mix(opened: Opened, media: MediaFolder) -> None:
    _, adapter = opened
    mixed = replace(PAGE, media=(media.add("a.mp4"), media.add("b.jpg")))
    assert isinstance(await adapter.prepare(mixed), Unfit)
    assert isinstance(await adapter.prepare(replace(PAGE, media=(media.add("a.pdf"),))), Unfit)


async def test_media_that_changed_or_is_away_is_not_uploaded(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    photo = media.add("a.jpg", b"approved")
    media.add("a.jpg", b"another")
    changed = await adapter.prepare(replace(PAGE, media=(photo,)))
    assert isinstance(changed, Unfit)
    assert changed.reason == "MEDIA_CHANGED"
    (media.folder / "a.jpg").unlink()
    assert isinstance(await adapter.prepare(replace(PAGE, media=(photo,))), Delayed)
    assert network.calls == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(fault=Fault.RESET), Delayed),
        (Rule(fault=Fault.NAMELESS, effect=True), Delayed),
        (Rule(fault=Fault.ANSWER), Delayed),
        (Rule(fault=Fault.RATE_LIMIT, seconds=120), Delayed),
        (Rule(fault=Fault.ANSWER, status=400, body={"error": {"code": 190}}), CredentialsInvalid),
        (Rule(fault=Fault.ANSWER, status=400, body={"error": {"code": 324, "error_subcode": 2069019}}), Unfit),
        (Rule(fault=Fault.ANSWER, status=400, body={"error": {"code": 100, "error_subcode": 33}}), Void),
    ],
)
async def test_an_upload_that_fails_says_what_to_do(
    opened: Opened, media: MediaFolder, rule: Rule, expected: type[object]
) -> None:
    network, adapter = opened
    network.faults.add(replace(rule, operation="photos"))
    seen = await adapter.prepare(replace(PAGE, media=(media.add("a.jpg"),)))
    assert isinstance(seen, expected), seen
    if isinstance(seen, Delayed) and rule.fault is Fault.RATE_LIMIT:
        assert seen.retry_after == timedelta(minutes=2)


async def test_a_post_whose_media_are_not_uploaded_is_not_sent(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    assert isinstance(await adapter.send(replace(PAGE, media=(media.add("a.jpg"),), handle="text")), NotSent)
    assert network.calls == []


@pytest.mark.parametrize("subcode", [None, 1366051])
async def test_the_refusal_of_a_duplicate_is_a_refusal_and_no_proof(opened: Opened, subcode: int | None) -> None:
    network, adapter = opened
    error = {"code": 506 if subcode is None else 100, "error_subcode": subcode, "message": "Duplicate"}
    network.faults.add(Rule(fault=Fault.ANSWER, status=400, body={"error": error}))
    seen = await adapter.send(PAGE)
    assert isinstance(seen, Rejected)
    assert not seen.peer_blocked


async def test_a_page_that_is_not_there_refuses_a_post_once(opened: Opened) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.ANSWER, status=400, body={"error": {"code": 100, "error_subcode": 33}}))
    assert isinstance(await adapter.send(PAGE), Rejected)
    assert len(network.calls) == 1, "only reads are repeated"


async def test_a_limit_of_the_application_is_one_of_all_accounts(opened: Opened) -> None:
    network, adapter = opened
    headers = {"X-App-Usage": '{"call_count": 100}'}
    network.faults.add(Rule(fault=Fault.ANSWER, status=403, headers=headers, body={"error": {"code": 4}}))
    seen = await adapter.send(PAGE)
    assert isinstance(seen, RateLimited)
    assert seen.level is Level.APPLICATION
    assert seen.retry_after == timedelta(hours=1)
    assert [each.level for each in seen.quotas] == [Level.APPLICATION]


async def test_no_token_is_in_an_address_or_a_body(opened: Opened, media: MediaFolder) -> None:
    network, adapter = opened
    post = await prepared(adapter, replace(PAGE, media=(media.add("a.mp4"),)))
    await adapter.send(post)
    await adapter.look(post)
    await adapter.verify("acme", PAGE.external_account_id, Credentials(access_token=PAGE.access_token), {})
    assert network.problems == []
    assert PAGE.access_token not in post.handle


async def test_a_comment_is_put_below_the_post(opened: Opened) -> None:
    network, adapter = opened
    post = await adapter.send(PAGE)
    assert isinstance(post, Accepted)
    comment = replace(PAGE, text="first!", follows=post.external_id)
    assert isinstance(await adapter.prepare(comment), Ready)
    seen = await adapter.send(comment)
    assert isinstance(seen, Accepted)
    assert network.effects_of(follows=post.external_id, text="first!", id=seen.external_id)
    assert isinstance(await adapter.send(replace(comment, follows="1_2")), Rejected), "there is no such post"


@pytest.mark.parametrize("code", [3, 10, 200])
async def test_a_comment_that_is_not_allowed_disconnects_nobody(opened: Opened, code: int) -> None:
    network, adapter = opened
    body = {"error": {"code": code, "message": "Requires pages_manage_engagement permission"}}
    network.faults.add(Rule(fault=Fault.ANSWER, operation="comment", status=403, body=body))
    seen = await adapter.send(replace(PAGE, follows="100200_1"))
    assert isinstance(seen, Rejected)
    assert seen.reason == "COMMENTS_NOT_ALLOWED"


async def test_a_token_that_is_over_is_called_so_by_a_comment_too(opened: Opened) -> None:
    _, adapter = opened
    comment = replace(PAGE, follows="100200_1", access_token="stolen-token")
    assert isinstance(await adapter.send(comment), AuthRefused)


async def test_credentials_are_refused_only_by_meta_itself(opened: Opened) -> None:
    network, adapter = opened
    network.faults.add(Rule(fault=Fault.ANSWER, status=502), Rule(fault=Fault.HANG))
    for _ in range(2):
        with pytest.raises(ProviderDown):
            await adapter.verify("acme", PAGE.external_account_id, Credentials(access_token=PAGE.access_token), {})
    with pytest.raises(CredentialsRefused):
        await adapter.verify("acme", PAGE.external_account_id, Credentials(access_token="stolen-token"), {})
