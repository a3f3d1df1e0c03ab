"""A post that an answer names by its text alone is that of the job only if it can be nobody else's."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.outcome import Accepted, Ambiguous
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import DUE, Replica, a_command, a_sent, claims_in

LOST = Ambiguous(reason="CONNECTION_LOST", message="")
BY_TEXT = Accepted(external_id="sp-1", external_url="https://sp/1", is_by_text=True)


@pytest.fixture
async def replica(database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url)
    await replica.posts(2, account="page")
    yield replica
    await replica.database.dispose()


async def first_is_out(replica: Replica, name: str) -> None:
    (claimed,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.settle([a_sent(claimed, Accepted(external_id=name, external_url=""))])


async def second_is_repeated(replica: Replica) -> Claimed:
    """Returns the second request of the second post, whose first one was lost."""
    (claimed,) = claims_in(await replica.claim([a_command("d1", "page")]))
    await replica.settle([a_sent(claimed, LOST)])
    for question in (await replica.recover()).questions:
        await replica.look_up(question.job)

    async def due() -> list[Command]:
        return list((await replica.recover()).due)

    (repeated,) = claims_in(await replica.claim(await eventually(due)))
    return repeated


async def test_the_post_of_another_job_is_left_to_a_person(replica: Replica) -> None:
    await first_is_out(replica, "sp-1")
    await replica.settle([a_sent(await second_is_repeated(replica), BY_TEXT)])
    assert await replica.states() == {"PUBLISHED": 1, "UNKNOWN RESEND_REFUSED": 1}
    (refused,) = await replica.rows("select * from post_job where draft_id = 'd1'")
    assert (refused.external_id, refused.error_reason) == ("", "POST_OF_ANOTHER")
    assert "sp-1" in refused.error_message


async def test_a_post_that_is_proven_by_its_handle_has_the_name_of_that(replica: Replica) -> None:
    await first_is_out(replica, "sp-1")
    proof = replace(BY_TEXT, own_id="container-1", publish_time=DUE)
    await replica.settle([a_sent(await second_is_repeated(replica), proof)])
    assert await replica.states() == {"PUBLISHED": 2}
    (named,) = await replica.rows("select * from post_job where draft_id = 'd1'")
    assert (named.external_id, named.external_url) == ("container-1", "")


async def test_one_post_is_not_given_to_one_of_two_that_are_in_doubt(replica: Replica) -> None:
    (claimed,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.settle([a_sent(claimed, LOST)])
    await replica.settle([a_sent(await second_is_repeated(replica), BY_TEXT)])
    assert "PUBLISHED" not in await replica.states()


async def test_a_post_of_its_own_is_that_of_the_job(replica: Replica) -> None:
    await first_is_out(replica, "sp-0")
    await replica.settle([a_sent(await second_is_repeated(replica), BY_TEXT)])
    assert await replica.states() == {"PUBLISHED": 2}


async def test_a_name_that_is_not_known_by_the_text_is_not_doubted(replica: Replica) -> None:
    await first_is_out(replica, "sp-1")
    certain = Accepted(external_id="sp-1", external_url="")
    await replica.settle([a_sent(await second_is_repeated(replica), certain)])
    assert await replica.states() == {"PUBLISHED": 2}
