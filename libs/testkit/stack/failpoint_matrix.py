"""Breaks one of two publishers at each of its failpoints, and checks the promises against the provider's ledger.

The actions: `kill`, `raise`, `drop` (every connection to the database and to the provider), and `stall`, for longer
than the lease. Each boundary gets an organization of its own, with an account of each class of provider. A victim that
survives is armed again as it is: what it did at one boundary goes on while it is led to the next.
"""

import asyncio
import base64
import os
from asyncio import TaskGroup
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client

from devstack.stack import Stack
from servicekit.rpc import open_channel
from testkit.eventually import eventually
from testkit.stack import remains
from testkit.stack.boundaries import BOUNDARIES, Boundary
from testkit.stack.history import ENDED, Acknowledged, History
from testkit.stack.orders import CLASSES, Caller, Orders
from testkit.stack.promises import CHECKS
from testkit.stack.scene import OTHER, VICTIM, Scene
from testkit.stack.victim import Hits, Victim

LEASE = 3.0
ACTIONS: Mapping[str, str] = {
    "kill": "kill",
    "raise": "raise:once",
    "drop": "drop:once",
    "stall": f"sleep:{LEASE + 1:g}:once",
}
QUICK = {
    "POSTFLOW_PUBLISHER_REQUEST_TIMEOUT": "1.5",
    "POSTFLOW_PUBLISHER_LEASE_MARGIN": "1.5",
    "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "0.5",
    "POSTFLOW_PUBLISHER_UNKNOWN_DEADLINE": "12",
    "POSTFLOW_PUBLISHER_LOOKUP_AGAIN": "0.5",
    "POSTFLOW_PUBLISHER_RETRY_FIRST": "0.25",
    "POSTFLOW_PUBLISHER_RETRY_CAP": "1",
    "POSTFLOW_PUBLISHER_SWEEP_PERIOD": "0.25",
    "POSTFLOW_PUBLISHER_MAIL_TIMEOUT": "1",
    "POSTFLOW_PUBLISHER_WEBHOOK_TIMEOUT": "1",
}
"""The request's time and the margin are the lease; the sender that was lost is looked up after it."""
KEPT = ("G0", "G1", "max_attempts", "G2", "G2 (events)", "G3", "G4", "G7", "G10", "follow-ups")
"""The promises that do not need Queue and Drafts."""
TRIES = 3
PATIENCE: Mapping[str, float] = {"kill": 1.0, "raise": 1.0, "drop": 1.0, "stall": LEASE + 1.5}
"""How long the victim may take to come to the failpoint: one that stands still elsewhere has to go on first."""


class Matrix:
    def __init__(self, stack: Stack, bus: Client, victim: Victim, other: Caller, hits: Hits, calls: TaskGroup) -> None:
        """`calls` is the group of calls to a victim that stands still in them."""
        self._stack = stack
        self._bus = bus
        self._victim = victim
        self._other = other
        self._hits = hits
        self._calls = calls
        self._orders: dict[str, Orders] = {}
        self._is_ending = False

    async def break_at(self, place: str, action: str) -> None:
        """Leads the victim to the failpoint, which is armed with the action. AssertionError if it never gets there."""
        boundary = BOUNDARIES[place]
        scenes: list[Scene] = []
        for attempt in range(TRIES):
            scene = await self._scene(f"{action}-{place.replace('.', '-')}-{attempt}", place)
            scenes.append(scene)
            await boundary.prepare(scene)
            await self._arm(place, action, boundary)
            if await _is_hit(scene, boundary, PATIENCE[action]):
                break
        else:
            raise AssertionError(f"the victim has never passed {place}")
        self._is_ending = action == "kill" or (action == "raise" and not boundary.call)
        if action == "kill":
            await eventually(lambda: not self._stack.running(VICTIM))
        await self._stack.sandbox.clear_faults()
        for scene in scenes:
            await boundary.finish(scene)

    async def check(self, *, within: float = 60.0) -> History:
        """Starts the victim unarmed, and waits until everything has ended and every promise is kept."""
        await self._stack.sandbox.clear_faults()
        await self._start("", BOTH_KEYS, fresh=self._is_ending)

        async def kept() -> History:
            history = await self._history()
            if found := list(self._problems(history)):
                await asyncio.sleep(0.25)
            assert not found, "\n".join([*found[:20], f"({len(found)} in all)"])
            return history

        return await eventually(kept, within=within)

    async def _scene(self, organization: str, place: str) -> Scene:
        orders = self._orders[organization] = Orders(organization, self._bus, self._stack.sandbox)
        for account in CLASSES:
            await orders.connect(self._other, account)
        return Scene(
            orders=orders,
            victim=lambda: self._victim.caller,
            other=self._other,
            stack=self._stack,
            hit=self._hits.at[place],
            is_in_call=BOUNDARIES[place].call,
            calls=self._calls,
        )

    async def _arm(self, place: str, action: str, boundary: Boundary) -> None:
        self._hits.at[place].clear()
        specification = ",".join(filter(None, [boundary.armed, f"{place}={ACTIONS[action]}"]))
        await self._start(specification, boundary.settings or BOTH_KEYS, fresh=self._is_ending or boundary.fresh)

    async def _start(self, specification: str, settings: Mapping[str, str], *, fresh: bool) -> None:
        folder = self._stack.state.path.parent
        shown = {name: str(folder / value) for name, value in settings.items()}
        await self._victim.arm(specification, shown, fresh=fresh)
        self._is_ending = False

    async def _history(self) -> History:
        def ledger() -> Sequence[Mapping[str, object]]:
            return self._stack.sandbox.ledger()

        return await remains.read(self._stack.database_urls, set(self._orders), ledger, acknowledged=Acknowledged())

    def _problems(self, history: History) -> Iterator[str]:
        for promise in KEPT:
            yield from (f"{promise}: {text}" for text in CHECKS[promise](history))
        doubtful = {row["post_job_id"] for row in history.attempts if row["state"] == "UNKNOWN"}
        for job in history.jobs:
            where = f"{job['organization_id']}: job {job['id']} of {job['social_account_id']}"
            if job["state"] not in ENDED and job["state"] != "PENDING":
                yield f"G2: {where} is {job['state']} {job['state_reason']}"
            if job["state"] == "NEEDS_ATTENTION" and not _is_unprovable(job, doubtful):
                yield f"G5: {where} needs attention, though its provider can tell: {job['error_message']}"
            if job["state"] in ("FAILED", "MISSED"):
                yield f"{where} is {job['state']} {job['error_reason']}: nothing but the process was broken"
        forbidden = {text for orders in self._orders.values() for text in orders.forbidden}
        yield from (f"G6: {each['text']!r} is out" for each in history.effects if each["text"] in forbidden)


async def _is_hit(scene: Scene, boundary: Boundary, patience: float) -> bool:
    for number in range(boundary.rounds):
        if await scene.until_hit(within=0.0):
            return True
        await boundary.work(scene, number)
        if await scene.until_hit(within=patience):
            return True
    return False


def _is_unprovable(job: Mapping[str, Any], doubtful: Set[object]) -> bool:
    """Returns whether no provider can tell: the class cannot, or the container may be lost with the database."""
    if job["social_account_id"] == "container":
        return bool(job["error_reason"] == "RESTORED")
    return job["social_account_id"] == "blind" and job["id"] in doubtful


KEYS_FILE = "POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE"
KEYS, ROTATED = "credentials.both", "credentials.rotated"
BOTH_KEYS = {KEYS_FILE: KEYS}


@asynccontextmanager
async def matrix(folder: Path) -> AsyncIterator[Matrix]:
    """Starts two publishers, PostgreSQL, NATS and the provider; nothing else."""
    hits = Hits(BOUNDARIES)
    async with AsyncExitStack() as exits:
        folder.mkdir(parents=True, exist_ok=True)
        keys = [f"{name} {base64.b64encode(os.urandom(32)).decode()}\n" for name in ("first", "second")]
        stack = Stack(
            folder / "state",
            environment=QUICK | {KEYS_FILE: str(folder / KEYS)},
            services=["publisher"],
            replicas={"publisher": 2},
            respawn=False,
            on_line=hits.note,
        )
        (folder / KEYS).write_text("".join(keys))
        (folder / ROTATED).write_text("".join(reversed(keys)))
        await exits.enter_async_context(stack)
        bus = await nats.connect(stack.nats_url)
        exits.push_async_callback(bus.close)
        other = open_channel(stack.address(OTHER))
        exits.push_async_callback(other.close)
        victim = Victim(stack, hits, folder)
        exits.push_async_callback(victim.close)
        calls = await exits.enter_async_context(TaskGroup())
        yield Matrix(stack, bus, victim, Caller(other), hits, calls)
