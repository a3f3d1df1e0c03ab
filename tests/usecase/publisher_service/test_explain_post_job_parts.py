"""A follow-up says which part it waits for, how that one stands, and what a person can do."""

import pytest

from publisher_service.domain.explanation import CheckState
from publisher_service.domain.outcome import Ambiguous, Outcome, Rejected
from tests.usecase.publisher_service.follow_ups import claim_part, claim_post, id_of, publish, settle, write
from tests.usecase.publisher_service.replica import DUE, Replica
from tests.usecase.publisher_service.restoring import a_slot

REFUSED = Rejected(reason="TEXT_TOO_LONG", message="too long")
LOST = Ambiguous(reason="CONNECTION_LOST", message="reset")


async def test_a_comment_waits_for_its_post(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    found = await replica.explain("acme", id_of(1))
    assert found.verdict == "PARENT_PENDING"
    assert found.sentence == "The first comment: it waits until the post is out, which is SCHEDULED."
    checks = {check.name: check for check in found.checks}
    assert checks["PARENT"].values["before_post_job_id"] == id_of(0)
    assert checks["TIME"].state is CheckState.NOT_APPLICABLE


async def test_a_post_follows_nothing(replica: Replica) -> None:
    await write(replica)
    found = await replica.explain("acme", id_of(0))
    assert found.verdict == "NO_TIME"
    assert found.sentence == "It has no time: no slot has the post."
    assert {check.name: check for check in found.checks}["PARENT"].state is CheckState.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (REFUSED, "has failed (TEXT_TOO_LONG): RetryPostJob of {id} begins its next run"),
        (LOST, "is UNKNOWN (CONNECTION_LOST)"),
    ],
)
async def test_a_comment_names_the_one_before_and_its_state(replica: Replica, outcome: Outcome, state: str) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    await settle(replica, await claim_part(replica), outcome)
    found = await replica.explain("acme", id_of(2))
    waits = "The second comment: it waits until the first comment is out"
    assert found.sentence == f"{waits}, which {state.format(id=id_of(1))}."


async def test_a_comment_whose_post_is_out_is_due_in_a_moment(replica: Replica) -> None:
    await write(replica)
    await settle(replica, await claim_post(replica))
    found = await replica.explain("acme", id_of(1))
    assert found.sentence == "The first comment: the post is out: it is due in a moment."
    await replica.begin_follow_ups()
    found = await replica.explain("acme", id_of(1))
    assert (found.verdict, found.sentence) == (
        "CLAIMED",
        "The first comment: nothing keeps it back: it is sent at once.",
    )
    assert {check.name: check for check in found.checks}["PARENT"].sentence == "The post, which it follows, is out."
