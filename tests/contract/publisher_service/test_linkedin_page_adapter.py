"""Posts of a page of LinkedIn are recognized in its list by exact text and time, or not at all."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.linkedin import Shared, Upload
from publisher_service.adapters.providers.adapter import CredentialsRefused
from publisher_service.adapters.providers.linkedin_text import little
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Absent, Accepted, Ambiguous, AuthRefused, Found, NoProof, Rejected
from tests.contract.publisher_service.linkedin_rig import LinkedInRig, linkedin_rig
from tests.contract.publisher_service.scenes_linkedin import MEMBER, PAGE, TOKEN

TEXT = "Read (all) of it #news"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LinkedInRig]:
    async with linkedin_rig(tmp_path, is_page=True) as opened:
        yield opened


def share(rig: LinkedInRig, text: str, *, minutes: float = 0.0, urn: str = "", state: str = "PUBLISHED") -> str:
    """Puts a post into the list, made so long ago."""
    urn = urn or f"urn:li:share:{len(rig.network.posts) + 1}"
    made = rig.clock.now() - timedelta(minutes=minutes)
    rig.network.posts.append(Shared(urn, PAGE, text, made, {}, state=state))
    return urn


@pytest.mark.parametrize("returned", [little(TEXT), TEXT, f"{little(TEXT)} ", "Read \\(all\\) of it {hashtag|#|news}"])
async def test_a_post_is_recognized_however_its_text_is_written(rig: LinkedInRig, returned: str) -> None:
    urn = share(rig, returned)
    seen = await rig.adapter.look(rig.post(TEXT, again=True))
    assert isinstance(seen, Found)
    assert (seen.external_id, seen.publish_time) == (urn, rig.clock.now())


@pytest.mark.parametrize(
    ("text", "minutes", "state", "expected"),
    [
        ("Read (all) of it", 0, "PUBLISHED", Absent),
        (little(TEXT), 1.0, "PUBLISHED", Found),
        (little(TEXT), 1.1, "PUBLISHED", Absent),
        (little(TEXT), 0, "PUBLISH_FAILED", Absent),
        (little(TEXT), 0, "DRAFT", Absent),
        # It was taken and is not shown yet: neither out nor absent.
        (little(TEXT), 0, "PUBLISH_REQUESTED", NoProof),
    ],
)
async def test_only_a_published_post_of_the_run_counts(
    rig: LinkedInRig, text: str, minutes: float, state: str, expected: type
) -> None:
    share(rig, text, minutes=minutes, state=state)
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), expected)


async def test_two_posts_with_the_text_prove_nothing(rig: LinkedInRig) -> None:
    share(rig, little(TEXT))
    share(rig, little(TEXT))
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), NoProof)


@pytest.mark.parametrize(("others", "expected"), [(0, Found), (39, Found), (40, NoProof)])
async def test_a_list_is_read_until_it_is_known_to_hold_no_more(rig: LinkedInRig, others: int, expected: type) -> None:
    share(rig, little(TEXT))
    for number in range(others):
        share(rig, f"other {number}")
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), expected)


async def test_older_posts_end_the_search(rig: LinkedInRig) -> None:
    for number in range(60):
        share(rig, f"old {number}", minutes=60 - number)
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), Absent)
    assert rig.requests == ["posts"]


async def test_an_old_post_at_the_top_does_not_end_the_search(rig: LinkedInRig) -> None:
    """Pages pin posts to the top."""
    share(rig, little(TEXT))
    for number in range(10):
        share(rig, f"other {number}")
    share(rig, "pinned", minutes=900)
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), Found)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"elements": []},
        {"elements": [], "paging": {}},
        {"elements": None, "paging": {"links": []}},
        {"elements": [{}], "paging": {"links": []}},
        {"elements": [None], "paging": {"links": []}},
        {"elements": [{"createdAt": "now"}], "paging": {"links": []}},
    ],
)
async def test_a_list_that_cannot_be_read_proves_nothing(rig: LinkedInRig, body: object) -> None:
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="posts", status=200, body=body))
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), NoProof)


async def test_without_text_and_media_nothing_is_recognized(rig: LinkedInRig) -> None:
    assert isinstance(await rig.adapter.look(rig.post("", again=True)), NoProof)
    assert isinstance(await rig.adapter.look(rig.post(TEXT)), NoProof)
    assert rig.requests == []


async def test_a_post_without_text_is_recognized_by_its_media(rig: LinkedInRig) -> None:
    post = rig.post("", media=(rig.media.add("a.jpg", b"picture"),), again=True)
    for number in range(2):
        urn = f"urn:li:image:{number}"
        rig.network.uploads[urn] = Upload(urn, PAGE, "image", 7, {0: b"picture"}, ready=rig.clock.now())
        sent = replace(post, handle=f'{{"urns":["{urn}"],"uploaded":1}}')
        assert isinstance(await rig.adapter.look(sent), Absent)
        assert isinstance(await rig.adapter.send(sent), Accepted)
        assert isinstance(await rig.adapter.look(sent), Found)


async def test_the_post_that_a_refusal_names_is_read(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post(TEXT))
    assert isinstance(first, Accepted)
    assert await rig.send(rig.post(TEXT, again=True)) == replace(first, is_by_text=True)
    assert isinstance(await rig.send(rig.post(TEXT)), Rejected)
    rig.network.delete(first.external_id)
    # It cannot be read: the refusal proves only that this request put nothing out.
    assert isinstance(await rig.send(rig.post(TEXT, again=True)), Rejected)
    assert len(rig.network.effects) == 1


async def test_an_older_post_that_a_refusal_names_is_not_the_runs(rig: LinkedInRig) -> None:
    await rig.send(rig.post(TEXT))
    rig.clock.advance(timedelta(minutes=5))
    assert isinstance(await rig.send(rig.post(TEXT, again=True)), Rejected)


async def test_a_token_that_may_not_read_proves_nothing(rig: LinkedInRig) -> None:
    rig.network.grant(TOKEN, MEMBER)
    assert isinstance(await rig.adapter.look(rig.post(TEXT, again=True)), NoProof)
    with pytest.raises(CredentialsRefused, match="r_organization_social"):
        await rig.adapter.verify("acme", PAGE, Credentials(access_token=TOKEN), {})
    revoked = rig.post(TEXT, again=True, access_token="revoked-5f0c91d2")
    assert isinstance(await rig.adapter.look(revoked), AuthRefused)


@pytest.mark.parametrize("account", ["2414183", PAGE])
async def test_a_page_may_be_named_by_its_number_or_its_urn(rig: LinkedInRig, account: str) -> None:
    await rig.adapter.verify("acme", account, Credentials(access_token=TOKEN), {})
    assert isinstance(await rig.send(rig.post(external_account_id=account)), Accepted)


@pytest.mark.parametrize("account", ["", MEMBER, "acme", "1/../2"])
async def test_what_is_no_page_is_refused_without_a_request(rig: LinkedInRig, account: str) -> None:
    with pytest.raises(CredentialsRefused, match="no organization"):
        await rig.adapter.verify("acme", account, Credentials(access_token=TOKEN), {})
    assert isinstance(await rig.adapter.send(rig.post(external_account_id=account)), Rejected)
    assert isinstance(await rig.adapter.look(rig.post(external_account_id=account, again=True)), NoProof)
    assert rig.requests == []


async def test_a_comment_is_found_among_those_of_its_post(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post(TEXT))
    assert isinstance(first, Accepted)
    comment = rig.post("More (here)", again=True, follows=first.external_id)
    assert isinstance(await rig.adapter.look(comment), Absent)
    rig.network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="comment.partner"))
    assert isinstance(await rig.send(comment), Ambiguous)
    seen = await rig.adapter.look(comment)
    assert isinstance(seen, Found)
    assert seen.external_id == rig.network.effects[1]["id"]
    assert isinstance(await rig.adapter.look(replace(comment, text="More")), Absent)
    await rig.send(comment)
    assert isinstance(await rig.adapter.look(comment), NoProof), "two of them"


async def test_many_comments_are_read_to_their_end(rig: LinkedInRig) -> None:
    first = await rig.send(rig.post(TEXT))
    assert isinstance(first, Accepted)
    for number in range(25):
        await rig.send(rig.post(f"comment {number}", follows=first.external_id))
    seen = await rig.adapter.look(rig.post("comment 24", again=True, follows=first.external_id))
    assert isinstance(seen, Found)
    for number in range(25, 45):
        await rig.send(rig.post(f"comment {number}", follows=first.external_id))
    unread = rig.post("comment 99", again=True, follows=first.external_id)
    assert isinstance(await rig.adapter.look(unread), NoProof)
