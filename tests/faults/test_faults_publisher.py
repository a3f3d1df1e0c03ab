"""Publisher dies, stalls or gets no answer while it sends: the post is out once, or its outcome is UNKNOWN."""

import os
import signal

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, DRAFT_STATE_PUBLISHING
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SENDING,
    POST_JOB_STATE_UNKNOWN,
)
from testkit.eventually import eventually, holds
from testkit.stack.posting import Posting
from tests.faults.second import second_publisher

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
SETTLE = "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE"
NO_ANSWERS = {"fault": "status", "operation": "lookup"}
"""Fails all look-ups, so that a post stays UNKNOWN while a test looks at it."""
EFFECTS = {"publisher.send.claimed": 0, "publisher.send.answered": 1}
"""Number of effects when Publisher dies at the failpoint."""


async def _die_while_sending(stack: Stack, posting: Posting, failpoint: str) -> None:
    """Kills Publisher at the failpoint, on an account whose provider treats every request as a new post."""
    await stack.restart("publisher", {FAILPOINTS: f"{failpoint}=kill"})
    await posting.tenant.clients.ready()
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await posting.schedule("post", ahead=0.5)
    await eventually(lambda: not stack.running("publisher"))
    assert len(posting.effects()) == EFFECTS[failpoint]


@pytest.mark.parametrize("failpoint", EFFECTS)
async def test_a_publisher_killed_while_sending_looks_the_post_up_first(
    stack: Stack, posting: Posting, failpoint: str
) -> None:
    await _die_while_sending(stack, posting, failpoint)
    await stack.sandbox.faults(NO_ANSWERS)

    await stack.start("publisher", {FAILPOINTS: ""})
    await posting.tenant.clients.ready()

    await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)
    await posting.tenant.until("post", DRAFT_STATE_PUBLISHING)
    await stack.sandbox.clear_faults()
    job = await posting.tenant.until_job("post", POST_JOB_STATE_PUBLISHED)
    await posting.tenant.until("post", DRAFT_STATE_PUBLISHED)
    history = await posting.check_all_published()
    assert [attempt["state"] for attempt in sorted(history.attempts, key=lambda row: row["fence"])] == (
        ["ACCEPTED"] if EFFECTS[failpoint] else ["ABSENT", "ACCEPTED"]
    )
    assert job.attempts == len(history.attempts)


@pytest.mark.parametrize("failpoint", EFFECTS)
async def test_a_post_stays_unknown_until_the_provider_can_be_asked(
    stack: Stack, posting: Posting, failpoint: str
) -> None:
    try:
        await stack.restart("publisher", {SETTLE: "300"})
        await _die_while_sending(stack, posting, failpoint)
        await stack.start("publisher", {FAILPOINTS: ""})
        await posting.tenant.clients.ready()
        job = await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)
        assert job.error_reason == "SENDER_LOST"
        await posting.tenant.until("post", DRAFT_STATE_PUBLISHING)

        async def still_unknown() -> bool:
            (job,) = await posting.tenant.jobs("post")
            draft = await posting.tenant.draft("post")
            assert len(posting.effects()) == EFFECTS[failpoint]
            return (job.state, draft.state) == (POST_JOB_STATE_UNKNOWN, DRAFT_STATE_PUBLISHING)

        await holds(still_unknown, during=4.5)  # beyond the first repeat of the command
        (attempt,) = (await posting.tenant.job(job.id)).attempts
        assert attempt.state == "UNKNOWN"
        await posting.check(unanswerable={job.id})
    finally:
        await stack.restart("publisher", {SETTLE: "1"})


@pytest.mark.parametrize(
    ("fault", "effects"),
    [
        ({"fault": "effect_then_hang"}, 1),
        ({"fault": "hang_without_effect"}, 0),
        ({"fault": "effect_then_reset"}, 1),
        ({"fault": "reset_before_effect"}, 0),
        ({"fault": "status", "status": 503, "effect": True}, 1),
        ({"fault": "status", "status": 503}, 0),
        ({"fault": "garbage", "effect": True}, 1),
        ({"fault": "garbage"}, 0),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
async def test_an_answer_that_proves_nothing_is_followed_by_a_look_up(
    stack: Stack, posting: Posting, fault: dict[str, object], effects: int
) -> None:
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await stack.sandbox.faults({**fault, "count": 1, "account": posting.tenant.external("of-post")}, NO_ANSWERS)
    await posting.schedule("post")
    await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)
    assert len(posting.effects()) == effects
    await stack.sandbox.clear_faults()
    await posting.check_all_published()


async def test_a_provider_without_look_up_gets_no_second_request(stack: Stack, posting: Posting) -> None:
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "blind")
    await stack.sandbox.faults({"fault": "effect_then_reset", "count": 1})
    await posting.schedule("post")
    job = await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)

    async def nothing_more() -> bool:
        requests = [line for line in stack.sandbox.ledger() if line["kind"] == "request"]
        its_own = [line for line in requests if line["account"] == posting.tenant.external("of-post")]
        return [line["operation"] for line in its_own].count("post") == 1

    await holds(nothing_more, during=3)  # a few look-ups later
    assert (await posting.tenant.job(job.id)).post_job.state == POST_JOB_STATE_UNKNOWN
    await posting.check_all_ended()
    assert await posting.tenant.states("post") == {"NEEDS_ATTENTION"}
    assert await nothing_more()


async def test_a_publisher_stopped_for_longer_than_its_lease_sends_nothing(stack: Stack, posting: Posting) -> None:
    # That leaves three seconds to stop it; a lease lasts half a second longer.
    await stack.restart("publisher", {FAILPOINTS: "publisher.send.claimed=sleep:3"})
    await posting.tenant.clients.ready()
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await posting.schedule("post")
    await posting.tenant.until_job("post", POST_JOB_STATE_SENDING)
    os.kill(stack.pid("publisher"), signal.SIGSTOP)
    try:
        async with second_publisher(stack):
            # If it was stopped in a transaction, it keeps its row locks until the server ends the session (60 s).
            await eventually(lambda: len(posting.effects()) == 1, within=90)
            os.kill(stack.pid("publisher"), signal.SIGCONT)
            await posting.tenant.clients.ready()
            await posting.check_all_published()

            async def once() -> bool:
                return len(posting.effects()) == 1

            await holds(once, during=1)
    finally:
        os.kill(stack.pid("publisher"), signal.SIGCONT)
        await stack.restart("publisher", {FAILPOINTS: ""})
    await posting.check_all_published()
