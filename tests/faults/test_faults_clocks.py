"""Hosts with wrong clocks and a database with slow answers: order and due times stay right."""

import random
from datetime import timedelta

import pytest

from devstack.stack import Stack
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_FAILED
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting
from testkit.stack.proxy import Proxy

OFFSET = "POSTFLOW_CLOCK_OFFSET"
POSTS = [f"post-{number}" for number in range(10)]


@pytest.mark.parametrize(("service", "before", "after"), [("queue", "60", "0"), ("publisher", "30", "-30")])
async def test_a_second_slot_goes_out_with_wrong_clocks(
    stack: Stack, posting: Posting, service: str, before: str, after: str
) -> None:
    await stack.restart(service, {OFFSET: before})
    await posting.tenant.clients.ready()
    await stack.sandbox.faults({"fault": "status", "status": 400})
    await posting.schedule(*POSTS)
    for post in POSTS:
        await posting.tenant.until_job(post, POST_JOB_STATE_FAILED)
    await posting.until_slots("FAILED")
    await stack.sandbox.clear_faults()
    await stack.restart(service, {OFFSET: after})
    await posting.tenant.clients.ready()
    try:
        await posting.schedule_each(dict.fromkeys(POSTS, SystemClock().now()))
        await posting.check_all_published(within=30)
    finally:
        await stack.restart(service, {OFFSET: "0"})
        await posting.tenant.clients.ready()


async def test_nothing_is_early_while_the_database_is_uneven(stack: Stack, posting: Posting) -> None:
    url = stack.database_urls["publisher"]
    posts = [f"post-{number}" for number in range(150)]
    await posting.prepare(*posts)
    async with Proxy(url, chance=random.Random(1)) as proxy:
        await stack.restart("publisher", {"POSTFLOW_PUBLISHER_DATABASE_URL": proxy.url})
        try:
            await posting.tenant.clients.ready()
            first = SystemClock().now() + timedelta(seconds=5)
            dues = {post: first + timedelta(seconds=0.07 * number) for number, post in enumerate(posts)}
            await posting.schedule_each(dues)
            proxy.delays = (0.9, 0.3, 0.15, 0.0, 0.0)
            await eventually(lambda: len(posting.effects()) == len(posts), within=90)
            proxy.delays = ()
            await posting.check_all_published(within=60)
        finally:
            proxy.delays = ()
            await stack.restart("publisher", {"POSTFLOW_PUBLISHER_DATABASE_URL": url})
            await posting.tenant.clients.ready()
