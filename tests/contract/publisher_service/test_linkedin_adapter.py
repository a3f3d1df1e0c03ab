"""Posts of a member of LinkedIn: the refusal of a repeat is the look-up, and comments have a place of their own."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Level,
    NoProof,
    NotSent,
    RateLimited,
    Rejected,
    Repeatable,
)
from publisher_service.domain.preparation import Ready, Unfit
from tests.contract.publisher_service.linkedin_rig import LinkedInRig, linkedin_rig
from tests.contract.publisher_service.scenes_linkedin import MEMBER, PAGE, TOKEN

EVERYTHING = "All \\ of | it {x} @me [a](b) <i> #tag #1 * _ ~\nhttps://example.com/a_(b)#c"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LinkedInRig]:
    async with linkedin_rig(tmp_path) as opened:
        yield opened


async def test_a_reader_sees_the_text_and_the_header_names_the_post(rig: LinkedInRig) -> None:
    seen = await rig.send(rig.post(EVERYTHING))
    (effect,) = rig.network.effects
    assert effect["text"] == EVERYTHING
    assert seen == Accepted(
        external_id=effect["id"], external_url=f"https://www.linkedin.com/feed/update/{effect['id']}/"
    )
    assert "{hashtag|\\#|tag}" in rig.network.posts[0].text


@pytest.mark.parametrize("account", ["782bbtaQ", MEMBER])
async def test_an_account_may_be_named_by_its_id_or_its_urn(rig: LinkedInRig, account: str) -> None:
    await rig.adapter.verify("acme", account, Credentials(access_token=TOKEN), {})
    assert isinstance(await rig.send(rig.post(external_account_id=account)), Accepted)


@pytest.mark.parametrize("account", ["", PAGE, "a b", "urn:li:person:"])
async def test_what_is_no_member_is_refused_without_a_request(rig: LinkedInRig, account: str) -> None:
    with pytest.raises(CredentialsRefused, match="no member"):
        await rig.adapter.verify("acme", account, Credentials(access_token=TOKEN), {})
    post = rig.post(external_account_id=account)
    assert isinstance(await rig.adapter.prepare(post), Unfit)
    assert isinstance(await rig.adapter.send(post), Rejected)
    assert rig.requests == []


async def test_the_token_of_another_member_is_refused(rig: LinkedInRig) -> None:
    with pytest.raises(CredentialsRefused, match="another member"):
        await rig.adapter.verify("acme", "somebody", Credentials(access_token=TOKEN), {})
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="userinfo"))
    with pytest.raises(ProviderDown):
        await rig.adapter.verify("acme", MEMBER, Credentials(access_token=TOKEN), {})


async def test_a_link_is_shown_by_its_preview(rig: LinkedInRig) -> None:
    await rig.send(rig.post(link="https://example.com/a", title="A title"))
    assert rig.network.posts[0].content == {"article": {"source": "https://example.com/a", "title": "A title"}}


async def test_a_repeat_in_doubt_is_the_first_post(rig: LinkedInRig) -> None:
    rig.network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="post"))
    assert isinstance(await rig.send(rig.post()), Ambiguous)
    rig.clock.advance(timedelta(seconds=95))
    post = replace(rig.post(), since=rig.clock.now() - timedelta(seconds=95))
    assert isinstance(await rig.adapter.look(post), Repeatable)
    seen = await rig.send(post)
    assert isinstance(seen, Accepted)
    assert [seen.external_id] == [each["id"] for each in rig.network.effects]
    assert seen.is_by_text, "the first post with this text may be that of another job"


async def test_a_repeat_in_doubt_is_the_first_post_even_if_that_is_gone(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post())
    assert isinstance(first, Accepted)
    rig.network.delete(first.external_id)
    assert await rig.send(rig.post(again=True)) == replace(first, is_by_text=True)


async def test_the_same_text_of_another_run_is_refused(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post())
    assert isinstance(first, Accepted)
    seen = await rig.send(rig.post())
    assert isinstance(seen, Rejected)
    assert seen.reason == "DUPLICATE_POST"
    assert first.external_id in seen.message


async def test_an_older_post_with_the_text_is_not_taken_for_that_of_the_run(rig: LinkedInRig) -> None:
    await rig.send(rig.post())
    rig.clock.advance(timedelta(hours=3))
    seen = await rig.send(rig.post(again=True))
    assert isinstance(seen, Rejected)
    assert seen.reason == "DUPLICATE_POST"


async def test_the_refusal_of_a_repeat_that_names_nothing_proves_nothing(rig: LinkedInRig) -> None:
    for named in ("", " of urn:li:person:782bbtaQ", " of urn:li:share:", " of urn:li:share:12:34"):
        body = {"status": 422, "message": f"Content is a duplicate{named}", "code": "DUPLICATE_POST"}
        rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="post", status=422, body=body))
        assert isinstance(await rig.send(rig.post(again=True)), Ambiguous)


@pytest.mark.parametrize(
    ("facts", "minutes", "expected"),
    [
        ({}, 9, Repeatable),
        ({}, 10, NoProof),
        ({"text": ""}, 1, NoProof),
        ({"follows": "urn:li:share:1"}, 1, NoProof),
    ],
)
async def test_a_repeat_is_ignored_for_ten_minutes_and_by_its_text(
    rig: LinkedInRig, facts: dict[str, Any], minutes: int, expected: type
) -> None:
    post = replace(rig.post(), since=rig.clock.now() - timedelta(minutes=minutes), **facts)
    assert isinstance(await rig.adapter.look(post), expected)
    assert isinstance(await rig.adapter.look(replace(post, since=None)), NoProof)
    assert rig.requests == []


async def test_a_repeat_fits_into_its_window(rig: LinkedInRig) -> None:
    limits = rig.adapter.limits
    assert limits.repeat_window == timedelta(minutes=10)
    assert limits.unknown_settle == timedelta(seconds=90)
    assert limits.unknown_deadline <= limits.repeat_window


async def test_a_version_that_is_over_is_a_mistake_of_the_settings(tmp_path: Path) -> None:
    for version in ("202401", ""):
        async with linkedin_rig(tmp_path, version=version) as rig:
            seen = await rig.send(rig.post())
            assert isinstance(seen, RateLimited)
            assert (seen.level, seen.retry_after) == (Level.ACCOUNT, timedelta(minutes=15))


@pytest.mark.parametrize(("who", "level"), [("APPLICATION", Level.APPLICATION), (MEMBER, Level.ACCOUNT)])
async def test_a_limit_of_a_day_ends_at_midnight_utc(rig: LinkedInRig, who: str, level: Level) -> None:
    rig.network.throttle(who)
    seen = await rig.send(rig.post())
    assert isinstance(seen, RateLimited)
    assert seen.level is level
    assert timedelta(hours=15) < seen.retry_after < timedelta(hours=15, minutes=5)
    rig.clock.advance(seen.retry_after)
    assert isinstance(await rig.send(rig.post()), Accepted)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (403, "Field Value validation failed: resource is forbidden", NotSent),
        (400, "Unable to obtain activity", Ambiguous),
        (409, "Write conflict. Retry the request.", NotSent),
        (403, "Not enough permissions to access: posts.CREATE", AuthRefused),
        (404, "The organization is not there", Rejected),
    ],
)
async def test_what_passes_is_no_refusal_for_good(rig: LinkedInRig, status: int, message: str, expected: type) -> None:
    body = {"status": status, "message": message}
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="post", status=status, body=body))
    assert isinstance(await rig.send(rig.post()), expected)


@pytest.mark.parametrize(("body", "expected"), [({"message": "slower", "status": 429}, RateLimited), ("", Ambiguous)])
async def test_a_429_is_a_limit_only_if_linkedin_says_so(rig: LinkedInRig, body: Any, expected: type) -> None:
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="post", status=429, body=body))
    assert isinstance(await rig.send(rig.post()), expected)


async def test_a_comment_of_a_member_goes_to_the_resource_that_takes_it(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post())
    assert isinstance(first, Accepted)
    seen = await rig.send(rig.post("See https://example.com/(a)", follows=first.external_id))
    comment = rig.network.effects[1]
    assert (comment["on"], comment["text"]) == (first.external_id, "See https://example.com/(a)")
    assert isinstance(seen, Accepted)
    assert seen.external_id == comment["id"]
    assert seen.external_url.startswith(f"{first.external_url}?commentUrn=urn%3Ali%3Acomment%3A%28")
    assert rig.requests == ["post", "comment"]


async def test_a_comment_that_is_not_allowed_disconnects_nobody(rig: LinkedInRig) -> None:
    body = {"status": 403, "code": "ACCESS_DENIED", "message": "Not enough permissions to access: socialActions"}
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="comment", status=403, body=body))
    seen = await rig.send(rig.post(follows="urn:li:share:1"))
    assert isinstance(seen, Rejected)
    assert seen.reason == "COMMENTS_NOT_ALLOWED"


async def test_comments_have_a_limit_of_a_minute(rig: LinkedInRig) -> None:
    body = {"status": 429, "message": "Comment create throttled: creation rate limit exceeded for member"}
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="comment", status=429, body=body))
    seen = await rig.send(rig.post(follows="urn:li:share:1"))
    assert isinstance(seen, RateLimited)
    assert (seen.level, seen.retry_after) == (Level.ACCOUNT, timedelta(minutes=1))


async def test_a_comment_without_a_name_is_ambiguous(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post())
    assert isinstance(first, Accepted)
    rig.network.faults.add(Rule(fault=Fault.NAMELESS, effect=True, operation="comment"))
    assert isinstance(await rig.send(rig.post(follows=first.external_id)), Ambiguous)


async def test_a_post_of_text_is_ready_without_a_request(rig: LinkedInRig) -> None:
    assert await rig.adapter.prepare(rig.post()) == Ready(handle="text")
    assert rig.requests == []
