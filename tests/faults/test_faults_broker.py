"""NATS restarts, is killed, or loses everything: its messages are sent again, and posts go out on time and once."""

import nats
import pytest

from devstack.servers.nats import EmbeddedNats
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting

POSTS = [f"post-{number}" for number in range(20)]


@pytest.fixture
def broker(stack: Stack) -> EmbeddedNats:
    assert stack.nats is not None
    return stack.nats


async def _schedule_and_hold(stack: Stack, posting: Posting) -> None:
    """Schedules twenty posts and waits until their commands are in the stream."""
    await posting.schedule(*POSTS, ahead=6)
    await posting.until_slots("DISPATCHED")
    await eventually(lambda: _held(stack))
    assert posting.effects() == []


async def _held(stack: Stack) -> bool:
    connection = await nats.connect(stack.nats_url)
    try:
        return (await connection.jetstream().stream_info("PUBLISH")).state.messages >= len(POSTS)
    finally:
        await connection.close()


async def test_a_restart_with_commands_held_loses_delays_and_repeats_none(
    stack: Stack, posting: Posting, broker: EmbeddedNats
) -> None:
    await _schedule_and_hold(stack, posting)
    await broker.restart()
    history = await posting.check_all_published()
    # Queue repeats a command four seconds after its time, and no post was that late.
    assert {slot["emission"] for slot in history.slots} == {1}


async def test_a_crash_with_commands_held_loses_and_repeats_none(
    stack: Stack, posting: Posting, broker: EmbeddedNats
) -> None:
    await _schedule_and_hold(stack, posting)
    await broker.kill()
    await broker.start()
    await posting.check_all_published()


async def test_an_outage_of_nats_when_posts_are_due_delays_them(
    stack: Stack, posting: Posting, broker: EmbeddedNats
) -> None:
    due = await posting.schedule(*POSTS, ahead=4)
    await posting.until_slots("DISPATCHED")
    await broker.kill()
    await eventually(lambda: SystemClock().now() > due)
    await broker.start()
    await posting.check_all_published()


async def test_commands_lost_by_nats_are_sent_again(stack: Stack, posting: Posting, broker: EmbeddedNats) -> None:
    await _schedule_and_hold(stack, posting)
    await broker.kill()
    await broker.wipe()
    await broker.start()
    history = await posting.check_all_published()
    assert min(slot["emission"] for slot in history.slots) > 1


async def test_events_lost_by_nats_are_published_again(stack: Stack, posting: Posting, broker: EmbeddedNats) -> None:
    """Publisher announces the outcomes while Queue and Drafts are down, and then the stream is deleted."""
    await posting.schedule(*POSTS, ahead=4)
    await posting.until_slots("DISPATCHED")
    await stack.kill("queue")
    await stack.kill("drafts")

    async def all_published() -> bool:
        states = {job.state for job in await posting.tenant.jobs()}
        return states == {POST_JOB_STATE_PUBLISHED}

    await eventually(all_published, within=20)
    connection = await nats.connect(stack.nats_url)
    try:
        await connection.jetstream().delete_stream("EVENTS")
    finally:
        await connection.close()
    await stack.start("queue")
    await stack.start("drafts")
    await posting.tenant.clients.ready()
    await posting.check_all_published(within=60)
    for post in POSTS[:2]:
        await posting.tenant.until(post, DRAFT_STATE_PUBLISHED)


async def test_a_post_made_just_after_nats_lost_everything_goes_out_too(
    stack: Stack, posting: Posting, broker: EmbeddedNats
) -> None:
    await posting.schedule("before", ahead=2)
    await broker.kill()
    await broker.wipe()
    await broker.start()
    await posting.schedule("after", ahead=1)
    await posting.check_all_published(within=60)
