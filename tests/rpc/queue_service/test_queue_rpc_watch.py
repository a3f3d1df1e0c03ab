"""WatchQueue over the wire, on a whole process with a real database and a real stream."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED
from postflow.queue.v1.queue_service_pb2 import SkipNextSlotRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_PUBLISHED,
    QUEUE_SLOT_STATE_SCHEDULED,
)
from servicekit.faults import Fault, InvalidRequest, NotFound, OutOfRange
from testkit.eventually import eventually
from tests.rpc.queue_service.watching import announced, first, schedule, watching
from topology import EVENTS

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
HOUR = timedelta(hours=1)


async def test_all_live_slots_come_first_and_then_each_change(rig: "Rig") -> None:
    for number in range(3):
        await schedule(rig, f"d{number}", (number + 1) * HOUR)
    await schedule(rig, "other", HOUR, "other")
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        assert list(watcher.slots) == ["d0", "d1", "d2"]
        await schedule(rig, "d9", 9 * HOUR)
        await watcher.until(lambda: "d9" in watcher.slots)
        assert "other" not in watcher.slots


async def test_an_empty_queue_is_caught_up_at_once(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher:
        message = await watcher.read()
        assert message.is_caught_up
        assert message.resume_token


async def test_a_post_is_followed_until_it_is_published(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        await schedule(rig, "d1", timedelta(seconds=33))
        await watcher.until_state("d1", QUEUE_SLOT_STATE_SCHEDULED)
        await watcher.until_state("d1", QUEUE_SLOT_STATE_DISPATCHED)
        [command] = await rig.commands(1)
        await rig.report(command, POST_JOB_STATE_PUBLISHED, 3)
        await watcher.until_state("d1", QUEUE_SLOT_STATE_PUBLISHED)
        assert watcher.slots["d1"].targets[0].post_job_state == "PUBLISHED"


async def test_a_changed_queue_is_sent(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        await rig.stub.SkipNextSlot(SkipNextSlotRequest(organization_id="acme", social_account_id="page"))
        await watcher.until(lambda: watcher.queue is not None)
        assert watcher.queue
        assert watcher.queue.skip_next


async def test_a_watch_goes_on_where_it_was_left(rig: "Rig") -> None:
    await schedule(rig, "d0", HOUR)
    await eventually(lambda: announced(rig, 1))
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
    await schedule(rig, "d1", timedelta(seconds=5))
    await schedule(rig, "d2", 2 * HOUR)
    [command] = await rig.commands(1)
    await rig.stub.SkipNextSlot(SkipNextSlotRequest(organization_id="acme", social_account_id="page"))
    async with watching(rig.stub, watcher.token) as again:
        await again.until(lambda: {"d1", "d2"} <= again.slots.keys() and again.queue is not None)
        assert "d0" not in again.slots
        await again.until_state("d1", QUEUE_SLOT_STATE_DISPATCHED)
    await rig.report(command, POST_JOB_STATE_PUBLISHED, 3)
    async with watching(rig.stub, again.token) as third:
        await third.until_state("d1", QUEUE_SLOT_STATE_PUBLISHED)


async def test_a_dispatch_while_away_is_seen(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        await schedule(rig, "d1", timedelta(seconds=32))
        await watcher.until_state("d1", QUEUE_SLOT_STATE_SCHEDULED)
    await rig.commands(1)
    async with watching(rig.stub, watcher.token) as again:
        await again.until_state("d1", QUEUE_SLOT_STATE_DISPATCHED)


async def test_a_watch_that_breaks_among_the_first_slots_misses_none(rig: "Rig") -> None:
    for number in range(5):
        await schedule(rig, f"d{number}", (number + 1) * HOUR)
    seen: set[str] = set()
    token = ""
    for _ in range(5):
        async with watching(rig.stub, token) as watcher:
            await watcher.read()
            token = watcher.token
            seen |= watcher.slots.keys()
    async with watching(rig.stub, token) as watcher:
        assert (await watcher.read()).is_caught_up
    assert seen == {"d0", "d1", "d2", "d3", "d4"}


async def test_bad_tokens_are_refused(rig: "Rig", refusal: Refusal) -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
    token = watcher.token
    for stub_call in (
        first(rig.stub, "nonsense"),
        first(rig.stub, token[:-2]),
        first(rig.stub, token, account="other"),
        first(rig.stub, token, organization_id="umbrella"),
    ):
        refused = await refusal(stub_call)
        assert isinstance(refused, InvalidRequest)
        assert [each.field for each in refused.violations] == ["resume_token"]


async def test_a_token_older_than_what_is_kept_is_refused(rig: "Rig", refusal: Refusal) -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
    for number in (1, 2, 3):
        await schedule(rig, f"d{number}", number * HOUR)
        await eventually(partial(announced, rig, number))
    js = rig.nats.jetstream()
    config = (await js.stream_info(EVENTS.name)).config
    await js.update_stream(replace(config, max_msgs=1))
    refused = await refusal(first(rig.stub, watcher.token))
    assert isinstance(refused, OutOfRange)
    assert refused.reason == "RESUME_TOKEN_EXPIRED"


async def test_an_unknown_account_cannot_be_watched(rig: "Rig", refusal: Refusal) -> None:
    rig.publisher.missing = {"page"}
    refused = await refusal(first(rig.stub))
    assert isinstance(refused, NotFound)
    assert (refused.reason, refused.metadata) == ("ACCOUNT_NOT_FOUND", {"social_account_id": "page"})
