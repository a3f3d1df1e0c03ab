"""The publisher dies, stalls or gets no answer while it sends: the post is out once, or said to be in question."""

import asyncio
import os
import signal
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devstack.layout import console_script
from devstack.ports import free_port
from devstack.processes.child import Child
from devstack.stack import START_SECONDS, Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, DRAFT_STATE_PUBLISHING
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SENDING,
    POST_JOB_STATE_UNKNOWN,
)
from testkit.eventually import eventually, holds
from testkit.stack.posting import Posting

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
SETTLE = "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE"
NO_ANSWERS = {"fault": "status", "operation": "lookup"}
"""The provider answers no question, so that a post is in question for as long as a test looks at it."""
EFFECTS = {"publisher.send.claimed": 0, "publisher.send.answered": 1}
"""How many effects there are when the publisher dies there."""


async def _send_into_death(stack: Stack, posting: Posting, failpoint: str) -> None:
    """On an account whose provider takes every request for a new post."""
    await stack.restart("publisher", {FAILPOINTS: f"{failpoint}=kill"})
    await posting.tenant.clients.ready()
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await posting.schedule("post", ahead=0.5)
    await eventually(lambda: not stack.running("publisher"))
    assert len(posting.effects()) == EFFECTS[failpoint]


@pytest.mark.parametrize("failpoint", EFFECTS)
async def test_a_publisher_killed_while_it_sends_asks_the_provider_before_it_does_anything(
    stack: Stack, posting: Posting, failpoint: str
) -> None:
    await _send_into_death(stack, posting, failpoint)
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
async def test_before_the_provider_can_be_asked_the_post_stays_in_question(
    stack: Stack, posting: Posting, failpoint: str
) -> None:
    try:
        await stack.restart("publisher", {SETTLE: "300"})
        await _send_into_death(stack, posting, failpoint)
        await stack.start("publisher", {FAILPOINTS: ""})
        await posting.tenant.clients.ready()
        job = await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)
        assert job.error_reason == "SENDER_LOST"
        await posting.tenant.until("post", DRAFT_STATE_PUBLISHING)

        async def still_in_question() -> bool:
            (job,) = await posting.tenant.jobs("post")
            draft = await posting.tenant.draft("post")
            assert len(posting.effects()) == EFFECTS[failpoint]
            return (job.state, draft.state) == (POST_JOB_STATE_UNKNOWN, DRAFT_STATE_PUBLISHING)

        await holds(still_in_question, during=4.5)  # beyond the first repetition of the command
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
async def test_an_answer_that_proves_nothing_is_followed_by_a_question(
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


async def test_a_provider_that_can_never_be_asked_gets_no_second_request(stack: Stack, posting: Posting) -> None:
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "blind")
    await stack.sandbox.faults({"fault": "effect_then_reset", "count": 1})
    await posting.schedule("post")
    job = await posting.tenant.until_job("post", POST_JOB_STATE_UNKNOWN)

    async def nothing_more() -> bool:
        requests = [line for line in stack.sandbox.ledger() if line["kind"] == "request"]
        ours = [line for line in requests if line["account"] == posting.tenant.external("of-post")]
        return [line["operation"] for line in ours].count("post") == 1

    await holds(nothing_more, during=3)  # a few look-ups later
    assert (await posting.tenant.job(job.id)).post_job.state == POST_JOB_STATE_UNKNOWN
    await posting.check_all_ended()
    assert await posting.tenant.states("post") == {"NEEDS_ATTENTION"}
    assert await nothing_more()


async def test_a_publisher_that_was_stopped_for_longer_than_its_claim_does_not_send_any_more(
    stack: Stack, posting: Posting
) -> None:
    # So long is the time to stop it; a claim lasts half a second longer.
    await stack.restart("publisher", {FAILPOINTS: "publisher.send.claimed=sleep:3"})
    await posting.tenant.clients.ready()
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await posting.schedule("post")
    await posting.tenant.until_job("post", POST_JOB_STATE_SENDING)
    os.kill(stack.pid("publisher"), signal.SIGSTOP)
    try:
        async with _second_publisher(stack):
            # Stopped in the midst of a transaction, it keeps what it has locked until the server ends it (60 s).
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


@asynccontextmanager
async def _second_publisher(stack: Stack) -> AsyncIterator[None]:
    addresses = {
        "POSTFLOW_PUBLISHER_LISTEN": f"127.0.0.1:{free_port()}",
        "POSTFLOW_PUBLISHER_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
    }
    command = [str(console_script("publisher", Path(sysconfig.get_path("scripts"))))]
    child = await Child.start(command, name="second", environment=stack._environment("publisher") | addresses)
    try:
        assert await child.says('"serving"', START_SECONDS), list(child.lines)
        yield
    finally:
        await asyncio.shield(child.stop((signal.SIGTERM, 20)))
