"""Publishers die amid a safe mode, one at each of its steps: the next one goes on, nothing doubles, nothing is lost."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import asyncpg
import grpc
import nats
import pytest
from nats.aio.client import Client

from devstack.errors import StackError
from devstack.servers.postgres import ROLE_PREFIX
from devstack.stack import Stack
from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from servicekit.rpc import open_channel
from testkit.eventually import eventually
from testkit.stack import remains
from testkit.stack.failpoint_matrix import KEPT, QUICK
from testkit.stack.history import Acknowledged, History, Row
from testkit.stack.orders import CLASSES, Caller, Orders
from testkit.stack.promises import CHECKS
from testkit.stack.scene import OTHER, VICTIM

PROCESSES = (OTHER, VICTIM)
COPY = "copy_of_publisher"
Death = tuple[str, str, str]
# The process, the failpoint behind its part, and the step that comes then. The other process goes on, or itself.
BEGINNING: list[Death] = [
    (VICTIM, "publisher.reconcile.replayed", "EVENTS"),
    (VICTIM, "publisher.reconcile.events", "JOBS"),
]
IN_DOUBT: list[Death] = [(OTHER, "publisher.reconcile.jobs", "JOBS")]
END: list[Death] = [
    (VICTIM, "publisher.reconcile.jobs", "VERSIONS"),
    (OTHER, "publisher.reconcile.versions", "VERSIONS"),
    (VICTIM, "publisher.reconcile.versions", "LOOKS"),
]
LOOKED_UP: list[Death] = [
    (OTHER, "publisher.look.begun", "LOOKS"),
    (VICTIM, "publisher.look.looked", "LOOKS"),
    (VICTIM, "publisher.look.recorded", "LOOKS"),
]
DEATHS = {
    # The events have announced every outcome.
    "kept": BEGINNING + END,
    "wiped": BEGINNING + IN_DOUBT + END + LOOKED_UP,
}
WAITING = {f"waiting-{kind}-{number}": f"{kind}-w{number}" for kind in CLASSES for number in range(2)}
SCHEDULED = {f"scheduled-{kind}": f"{kind}-s" for kind in CLASSES}
AFTER = {f"after-{kind}": f"{kind}-a" for kind in CLASSES}
LATER = {f"later-{kind}": f"{kind}-l" for kind in CLASSES}

# Nothing is looked up before the steps are done.
SETTLE = {"POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "12", "POSTFLOW_PUBLISHER_UNKNOWN_DEADLINE": "24"}

_numbers = count(1)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("reconciled") / "state"
    replicas = {"publisher": len(PROCESSES)}
    async with Stack(
        folder, environment=QUICK | SETTLE, services=["publisher"], replicas=replicas, respawn=False
    ) as running:
        yield running


@pytest.fixture
async def bus(stack: Stack) -> AsyncIterator[Client]:
    connection = await nats.connect(stack.nats_url)
    yield connection
    await connection.close()


@pytest.fixture
async def caller(stack: Stack) -> AsyncIterator[Caller]:
    for process in PROCESSES:
        if not stack.running(process):  # a test before this one has failed
            await stack.start(process, {"POSTFLOW_PUBLISHER_FAILPOINTS": ""})
    channel = open_channel(stack.address(OTHER))
    yield Caller(channel)
    await channel.close()


@pytest.fixture
def orders(stack: Stack, bus: Client) -> Orders:
    return Orders(f"restored-{next(_numbers)}", bus, stack.sandbox)


async def stop(stack: Stack) -> None:
    for process in PROCESSES:
        await stack.stop(process)


async def start(stack: Stack, caller: Caller) -> None:
    for process in PROCESSES:
        await stack.start(process, {"POSTFLOW_PUBLISHER_FAILPOINTS": ""})

    async def answers() -> bool:
        with suppress(grpc.aio.AioRpcError):
            await caller.admin.GetSafeMode(pb.GetSafeModeRequest())
            return True
        return False

    await eventually(answers)


async def say(orders: Orders, caller: Caller, posts: dict[str, str], *, ahead: float = 0.0) -> None:
    """Has a post of each account go out `ahead` seconds from now."""
    for draft, account in posts.items():
        await orders.write(draft, account)
        await orders.schedule(draft, account, ahead=ahead)
    for draft in posts:
        await orders.until(caller, draft, "SCHEDULED")
    for draft, account in posts.items():
        await orders.command(draft, account)


async def live_on(stack: Stack, orders: Orders, caller: Caller, *, after: bool) -> None:
    """Makes a copy while posts wait or have a time; they go out after it, and so do later ones."""
    assert stack.postgres is not None
    for account in [*WAITING.values(), *SCHEDULED.values(), *AFTER.values(), *LATER.values()]:
        await orders.connect(caller, account)
    await orders.faults("status", *WAITING.values(), status=429, retry_after=6)
    await say(orders, caller, WAITING)
    await say(orders, caller, SCHEDULED, ahead=8)
    for draft, account in LATER.items():
        await orders.write(draft, account)
        await orders.schedule(draft, account, ahead=600)
        await orders.until(caller, draft, "SCHEDULED")
    for draft in WAITING:
        await orders.until(caller, draft, "WAITING")
    await stop(stack)
    await stack.postgres.drop_database(COPY)
    await stack.postgres.create_database(COPY, template="publisher")
    await stack.sandbox.clear_faults()
    await start(stack, caller)
    if after:
        await say(orders, caller, AFTER)
    for draft in [*WAITING, *SCHEDULED, *(AFTER if after else ())]:
        await orders.until(caller, draft, "PUBLISHED")
    await stop(stack)


async def restore(stack: Stack) -> None:
    assert stack.postgres is not None
    await stack.postgres.drop_database("publisher")
    await stack.postgres.create_database("publisher", template=COPY, owner=f"{ROLE_PREFIX}publisher")


async def die_at(stack: Stack, process: str, place: str) -> None:
    with suppress(StackError):  # it may die before it serves
        await stack.start(process, {"POSTFLOW_PUBLISHER_FAILPOINTS": f"{place}=kill"})

    async def is_dead() -> bool:
        assert not stack.running(process), f"it has never passed {place}"
        return True

    await eventually(is_dead, within=30)
    assert any(f"failpoint {place}: kill" in line for line in stack.output(process)), place


async def step(stack: Stack) -> str:
    connection = await asyncpg.connect(stack.database_urls["publisher"])
    try:
        return str(await connection.fetchval("select step from safe_mode where active"))
    finally:
        await connection.close()


async def leave(caller: Caller) -> pb.SafeMode:
    async def left() -> pb.SafeMode | None:
        try:
            answer = await caller.admin.LeaveSafeMode(pb.LeaveSafeModeRequest(operator="ann"))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            return None
        mode: pb.SafeMode = answer.safe_mode
        return mode

    found = await eventually(left, within=60)
    assert found is not None
    return found


async def kept(stack: Stack, orders: Orders) -> History:
    """Returns what is left once every promise is kept."""

    def ledger() -> list[Row]:
        own = orders.external("")
        return [line for line in stack.sandbox.ledger() if str(line["account"]).startswith(own)]

    async def read() -> History:
        organizations = {orders.organization_id}
        read = await remains.read(stack.database_urls, organizations, ledger, acknowledged=Acknowledged())
        found = [f"{promise}: {text}" for promise in KEPT for text in CHECKS[promise](read)]
        assert not found, "\n".join(found)
        return read

    return await eventually(read, within=90)


def doubled(orders: Orders) -> dict[str, int]:
    counted = Counter(str(effect["text"]) for effect in orders.effects())
    return {text: number for text, number in counted.items() if number > 1}


@pytest.mark.parametrize("events", ["kept", "wiped"])
async def test_processes_that_die_amid_a_safe_mode_leave_it_to_the_next(
    stack: Stack, bus: Client, orders: Orders, caller: Caller, events: str
) -> None:
    await live_on(stack, orders, caller, after=events == "kept")
    if events == "wiped":
        assert await bus.jetstream().delete_stream("EVENTS")
    await restore(stack)
    for process, place, reached in DEATHS[events]:
        await die_at(stack, process, place)
        assert await step(stack) == reached, place
    await start(stack, caller)
    assert not doubled(orders)
    assert (await leave(caller)).summary.published

    history = await kept(stack, orders)
    assert not doubled(orders)
    states = {job["draft_id"]: job["state"] for job in history.jobs}
    out = WAITING | SCHEDULED | (AFTER if events == "kept" else {})
    assert states.keys() == (out | LATER).keys()
    assert {states[draft] for draft in LATER} == {"SCHEDULED"}
    assert len(orders.effects()) == len(out)
    asked = {out[draft].partition("-")[0] for draft in out if states[draft] != "PUBLISHED"}
    assert asked <= ({"blind", "container"} if events == "wiped" else set())
    assert set(states.values()) <= {"PUBLISHED", "SCHEDULED", "NEEDS_ATTENTION"}


async def test_without_any_marks_the_same_restore_doubles_posts(
    stack: Stack, bus: Client, orders: Orders, caller: Caller
) -> None:
    """Shows that the posts above are worth their name: if nobody notices the restore, they go out again."""
    await live_on(stack, orders, caller, after=False)
    assert await bus.jetstream().delete_key_value("publisher")
    await restore(stack)
    await start(stack, caller)
    for draft in WAITING:
        await orders.until(caller, draft, "PUBLISHED")
    texts = {text.partition(" ")[0] for text in doubled(orders)}
    # The provider itself publishes no key and no container twice.
    assert texts == {draft for draft in WAITING if "lookup" in draft or "blind" in draft}
