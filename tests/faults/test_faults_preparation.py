"""Publisher dies while a post is prepared: the post goes out once, and never with a text that was changed since."""

from contextlib import suppress
from datetime import timedelta

import grpc
import pytest

from devstack.stack import Stack
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
STEPS = ("publisher.prepare.taken", "publisher.prepare.answered", "publisher.prepare.recorded")


@pytest.mark.parametrize("failpoint", STEPS)
@pytest.mark.parametrize("edited", [False, True], ids=["same text", "edited"])
async def test_a_publisher_killed_while_preparing_publishes_the_newest_text_once(
    stack: Stack, posting: Posting, failpoint: str, edited: bool
) -> None:
    await stack.sandbox.account(posting.tenant.external("of-post"), media_seconds=0.2)
    await posting.write("post", text="first", provider="sandbox-container")
    await stack.restart("publisher", {FAILPOINTS: f"{failpoint}=kill"})
    await posting.tenant.clients.ready()
    await posting.schedule_each({"post": SystemClock().now() + timedelta(seconds=3)})
    await eventually(lambda: not stack.running("publisher"), within=20)
    assert posting.effects() == []
    await stack.start("publisher", {FAILPOINTS: ""})
    await posting.tenant.clients.ready()
    if edited:
        # Too late if the first text is out by now.
        with suppress(grpc.aio.AioRpcError):
            await posting.change_text("post", "second")
            await posting.approve("post")
    history = await posting.check_all_published()
    texts = {effect["text"] for effect in history.effects}
    assert texts <= {"first", "second"}
    assert len(history.effects) == 1
