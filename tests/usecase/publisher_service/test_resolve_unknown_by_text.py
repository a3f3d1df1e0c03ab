"""A post that a look recognizes by its text is proof only if it can be nobody else's."""

from collections.abc import AsyncIterator

import pytest

from publisher_service.adapters.providers.adapter import Post, Proof
from publisher_service.domain.outcome import Accepted, Ambiguous, Finding, Found
from tests.usecase.publisher_service.replica import (
    Replica,
    TrustingAdapter,
    a_command,
    a_sent,
    claims_in,
)

LOST = Ambiguous(reason="CONNECTION_LOST", message="")


class ShowsOnePost(TrustingAdapter):
    """Lists one post, which has the text that is looked for."""

    def __init__(self, proof: Proof) -> None:
        self.proof = proof

    async def look(self, post: Post) -> Finding:
        if self.proof is Proof.CHECKABLE:
            return Found(external_id="sp-1", external_url="https://sp/1", is_by_text=True, own_id="container")
        return Found(external_id="sp-1", external_url="")


@pytest.fixture(params=[Proof.LOOKUP, Proof.KEYED])
async def replica(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Replica]:
    replica = Replica(database_url, adapter=ShowsOnePost(request.param))
    replica.by_text = request.param is Proof.LOOKUP  # type: ignore[attr-defined]
    yield replica
    await replica.database.dispose()


async def lose(replica: Replica, draft: str) -> None:
    (claimed,) = claims_in(await replica.claim([a_command(draft, "page")]))
    await replica.settle([a_sent(claimed, LOST)])


async def look_at_all(replica: Replica) -> None:
    for question in (await replica.recover()).questions:
        await replica.look_up(question.job)


async def test_a_post_of_its_own_is_proof(replica: Replica) -> None:
    await replica.posts(1, account="page")
    await lose(replica, "d0")
    await look_at_all(replica)
    assert await replica.states() == {"PUBLISHED": 1}


async def test_the_post_of_a_published_job_is_no_proof_for_another(replica: Replica) -> None:
    await replica.posts(2, account="page")
    await lose(replica, "d1")
    (claimed,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.settle([a_sent(claimed, Accepted(external_id="sp-1", external_url=""))])
    await look_at_all(replica)
    published = (await replica.states())["PUBLISHED"]
    assert published == (1 if replica.by_text else 2)  # type: ignore[attr-defined]


async def test_one_post_is_no_proof_for_two_that_are_in_doubt(replica: Replica) -> None:
    await replica.posts(2, account="page")
    await lose(replica, "d0")
    await lose(replica, "d1")
    await look_at_all(replica)
    expected = {"UNKNOWN": 2} if replica.by_text else {"PUBLISHED": 2}  # type: ignore[attr-defined]
    assert await replica.states() == expected


async def test_a_post_that_is_being_sent_may_be_the_one_that_is_found(replica: Replica) -> None:
    await replica.posts(2, account="page")
    await lose(replica, "d0")
    claims_in(await replica.claim([a_command("d1", "page")]))
    await look_at_all(replica)
    expected = "UNKNOWN" if replica.by_text else "PUBLISHED"  # type: ignore[attr-defined]
    assert (await replica.states())[expected] == 1


async def test_a_post_that_its_container_proves_is_known_by_it_if_in_doubt(database_url: str) -> None:
    replica = Replica(database_url, adapter=ShowsOnePost(Proof.CHECKABLE))
    await replica.posts(2, account="page")
    for draft in ("d0", "d1"):
        await lose(replica, draft)
        await look_at_all(replica)
    named = await replica.rows("select external_id, external_url from post_job where state = 'PUBLISHED' order by id")
    assert {tuple(row) for row in named} == {("sp-1", "https://sp/1"), ("container", "")}
    await replica.database.dispose()
