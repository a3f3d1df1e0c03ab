"""A post that was recognized by its text is known from others of the account by what they have sent, and where to."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from postflow.drafts.v1 import draft_pb2
from publisher_service.application.recognition import is_of_another
from publisher_service.domain.outcome import Accepted, Ambiguous, Outcome
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in

LOST = Ambiguous(reason="CONNECTION_LOST", message="")
SAID = {"text": "hello", "title": "Title"}


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url)
    await replica.posts(2, account="page")
    yield replica
    await replica.database.dispose()


async def send(replica: Replica, draft: str, said: dict[str, Any], outcome: Outcome = LOST) -> None:
    encoded = draft_pb2.DraftContent(**said).SerializeToString()
    digest = hashlib.sha256(encoded).hexdigest()
    await replica.save(replace(a_draft(draft, "page", version=2), content=encoded, content_digest=digest))
    (claimed,) = claims_in(await replica.claim([a_command(draft, "page")]))
    await replica.settle([a_sent(claimed, outcome)])


async def may_be_of_another(replica: Replica) -> bool:
    """Returns whether the first post, which is in doubt, may be another one if it is found."""
    (question,) = [each for each in (await replica.recover()).questions if each.job.draft_id == "d0"]
    async with replica.database.statement() as connection:
        return await is_of_another(connection, question.job, "sp-1")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (SAID, True),
        ({"text": "hello", "title": "Another"}, True),
        ({"text": " hello\n"}, True),
        ({"text": "common", "channel_texts": [draft_pb2.ChannelText(channel="facebook", text="hello")]}, True),
        ({"text": "other"}, False),
        ({"text": "other", "title": "Title"}, False),
    ],
)
async def test_a_post_in_doubt_is_a_rival_if_it_has_sent_the_same(
    replica: Replica, other: dict[str, Any], expected: bool
) -> None:
    await send(replica, "d0", SAID)
    await send(replica, "d1", other)
    assert await may_be_of_another(replica) is expected


async def test_a_mail_is_known_by_its_subject(replica: Replica) -> None:
    await send(replica, "d0", SAID)
    await send(replica, "d1", {"text": "other", "title": "Title"})
    await replica.write("update post_job set destination = 'Ann@example.com'")
    assert await may_be_of_another(replica)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "update post_job set channel = 'telegram' where draft_id = 'd1'",
        "update post_job set destination = 'ann' where draft_id = 'd1'",
        "update post_job set follows = '1' where draft_id = 'd1'",
    ],
)
async def test_a_post_at_another_place_is_no_rival(replica: Replica, elsewhere: str) -> None:
    await send(replica, "d0", SAID)
    await send(replica, "d1", SAID)
    await replica.write(elsewhere)
    assert not await may_be_of_another(replica)


async def test_a_post_whose_text_is_lost_may_have_sent_the_same(replica: Replica) -> None:
    await send(replica, "d0", SAID)
    await send(replica, "d1", {"text": "other"})
    assert not await may_be_of_another(replica)
    await replica.write("delete from content where draft_id = 'd1'")
    await replica.write("delete from kept_content using post_job where id = post_job_id and draft_id = 'd1'")
    assert await may_be_of_another(replica)


@pytest.mark.parametrize(("name", "expected"), [("sp-1", True), ("sp-2", False)])
async def test_a_post_that_is_out_is_known_by_its_name_alone(replica: Replica, name: str, expected: bool) -> None:
    await send(replica, "d0", SAID)
    await send(replica, "d1", SAID, Accepted(external_id=name, external_url=""))
    assert await may_be_of_another(replica) is expected
