"""Processes die at every failpoint: the next process finishes their work."""

import asyncio
import signal
from contextlib import suppress
from datetime import timedelta

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

import drafts_service.main
import publisher_service.main
import queue_service.main
import schedule_service.main
from devstack.errors import StackError
from devstack.layout import SERVICES
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.queue.v1.queue_pb2 import LATE_ACTION_MISS, LATE_ACTION_RESLOT
from postflow.queue.v1.queue_service_pb2 import GetQueueRequest
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.timer_pb2 import TIMER_STATE_FINISHED, Timer
from servicekit import failpoints
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import PATIENCE, Posting

# Their failpoints are declared too if they run in the same session.
OF_OTHER_TESTS = {"test", "tiny"}
# Publisher has a test of its own for each of its failpoints; the work of this file passes these.
OF_PUBLISHER = {"publisher.hold.committed", "publisher.send.answered", "publisher.settle.committed"}
# Passed only by slots that are too late to be sent, which this file has a test for.
OF_LATE_SLOTS = "queue.dispatch.expired"
SECOND = timedelta(seconds=1)
MAINS = (drafts_service.main, publisher_service.main, queue_service.main, schedule_service.main)


def places() -> dict[str, tuple[str, ...]]:
    """Returns every failpoint that the main modules declare, with the services that pass it."""
    assert all(module.main for module in MAINS)
    names = (
        name
        for name in sorted(failpoints.declared())
        if name in OF_PUBLISHER or name.partition(".")[0] not in OF_OTHER_TESTS | {"publisher"}
    )
    return {name: _passed_by(name) for name in names}


def _passed_by(place: str) -> tuple[str, ...]:
    match place.partition(".")[0]:
        case "relay":
            return SERVICES
        case "consumer":
            return tuple(service for service in SERVICES if service != "schedule")
        case service:
            assert service in SERVICES, place
            return (service,)


def armed(service: str, specification: str) -> dict[str, str]:
    return {f"POSTFLOW_{service.upper()}_FAILPOINTS": specification}


@pytest.mark.parametrize("place", [place for place in places() if place != OF_LATE_SLOTS])
async def test_a_process_killed_at_any_failpoint_leaves_nothing_undone(
    stack: Stack, posting: Posting, place: str
) -> None:
    victims = places()[place]
    for victim in victims:
        await _arm(stack, victim, f"{place}=kill")
    async with asyncio.TaskGroup() as group:
        group.create_task(_work(posting))
        for victim in victims:
            group.create_task(_revive(stack, victim))
    await posting.check_all_published()
    await eventually(lambda: _fired(posting, "due"), within=30)
    (changed,) = [effect for effect in posting.effects() if effect["account"].endswith(".of-changed")]
    assert changed["text"] == "The new text"


async def _arm(stack: Stack, victim: str, specification: str) -> None:
    await stack.stop(victim)
    try:
        await stack.start(victim, armed(victim, specification))
    except StackError as error:
        # A redelivered event killed it before it was serving.
        if f"exit code {-signal.SIGKILL}" not in str(error):
            raise


async def _revive(stack: Stack, victim: str) -> None:
    """Starts the victim once it is dead: that can take as long as the victims before it need to die and restart."""
    await eventually(lambda: not stack.running(victim), within=PATIENCE)
    await stack.start(victim, armed(victim, ""))


async def _work(posting: Posting) -> None:
    """Passes every failpoint: a schedule, a timer, posts, one whose queue is paused for a while, one that is late and
    gets another time, and one whose approved text is changed."""
    await posting.insist(lambda: posting.tenant.put_schedule(AccountSchedule(social_account_id="a", time_zone="UTC")))
    await posting.insist(lambda: posting.tenant.create_timer("due", Timer(topic="test", delay=Duration(seconds=1))))
    await posting.schedule("one", "two", ahead=1)
    await posting.schedule("paused", ahead=2)
    await posting.pause("paused")
    await posting.resume("paused")
    await posting.write("late")
    await posting.insist(lambda: posting.tenant.set_late_policy("of-late", LATE_ACTION_RESLOT, grace=SECOND))
    await posting.schedule("late", ahead=-30)
    await posting.write("changed")
    await posting.insist(lambda: posting.tenant.change_text("changed", "The new text"))
    await posting.schedule("changed", ahead=1)


async def _fired(posting: Posting, timer_id: str) -> bool:
    timer = await posting.insist(lambda: posting.tenant.timer(timer_id))
    return timer.state == TIMER_STATE_FINISHED and timer.fire_count == 1


async def test_a_queue_that_dies_as_it_ends_late_slots_ends_them(stack: Stack, posting: Posting) -> None:
    """The slot of a disabled account is too late by a minute, and so the first look of a new process ends it."""
    tenant = posting.tenant
    await tenant.put_schedule(AccountSchedule(social_account_id="of-late", time_zone="UTC", enabled=False))
    await posting.write("late")
    await eventually(lambda: _is_disabled(posting, "of-late"))
    await tenant.set_late_policy("of-late", LATE_ACTION_MISS, grace=SECOND)
    due = await posting.schedule("late", ahead=-58)
    await eventually(lambda: SystemClock().now() > due + 61 * SECOND)
    await _arm(stack, "queue", f"{OF_LATE_SLOTS}=kill")
    await eventually(lambda: not stack.running("queue"))
    assert [slot["state"] for slot in (await posting.history()).slots] == ["DISPATCHED"]
    await stack.start("queue", armed("queue", ""))
    await posting.tenant.clients.ready()
    await posting.until_slots("MISSED")
    await posting.check_all_ended()
    assert posting.effects() == []


async def _is_disabled(posting: Posting, account: str) -> bool:
    request = GetQueueRequest(organization_id=posting.tenant.organization_id, social_account_id=account)
    queue = (await posting.tenant.clients.queue.GetQueue(request)).queue
    return bool(queue.time_zone) and not queue.schedule_enabled


async def test_a_queue_that_dies_between_claim_and_publish_sends_again(stack: Stack, posting: Posting) -> None:
    await stack.restart("queue", armed("queue", "queue.dispatch.claimed=kill"))
    await posting.tenant.clients.ready()
    await posting.write("post")
    # The answer may be lost with the process; the slot is checked below.
    with suppress(grpc.aio.AioRpcError):
        await posting.tenant.schedule_at("post", SystemClock().now() + timedelta(seconds=1))
    await eventually(lambda: not stack.running("queue"))
    assert {slot["state"] for slot in (await posting.history()).slots} == {"DISPATCHED"}
    await stack.start("queue", armed("queue", ""))
    await posting.tenant.clients.ready()
    history = await posting.check_all_published()
    assert [slot["emission"] for slot in history.slots] == [2]


@pytest.mark.parametrize("victims", [("drafts",), ("queue",), ("drafts", "queue"), SERVICES], ids="-".join)
async def test_processes_killed_while_events_flow_catch_up(
    stack: Stack, posting: Posting, victims: tuple[str, ...]
) -> None:
    await posting.schedule(*[f"post-{number}" for number in range(30)], ahead=1)
    await eventually(lambda: len(posting.effects()) >= 3)
    for victim in victims:
        await stack.kill(victim)
    for victim in victims:
        await stack.start(victim)
    await posting.tenant.clients.ready()
    await posting.check_all_published()
    await posting.tenant.until("post-0", DRAFT_STATE_PUBLISHED)


@pytest.mark.parametrize("service", SERVICES)
async def test_failpoints_are_refused_in_production(stack: Stack, posting: Posting, service: str) -> None:
    environment = f"POSTFLOW_{service.upper()}_ENVIRONMENT"
    place = next(name for name, passed_by in places().items() if service in passed_by)
    await stack.stop(service)
    try:
        with pytest.raises(StackError, match="failpoints are refused in production"):
            await stack.start(service, {environment: "production", **armed(service, f"{place}=sleep:0")})
    finally:
        await stack.start(service, {environment: "development", **armed(service, "")})


async def test_an_unknown_failpoint_is_refused_at_the_start(stack: Stack, posting: Posting) -> None:
    await stack.stop("queue")
    with pytest.raises(StackError, match=r"unknown failpoints queue\.no\.such"):
        await stack.start("queue", armed("queue", "queue.no.such=kill"))
