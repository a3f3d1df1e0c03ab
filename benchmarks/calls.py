"""Measures what a call costs: CPU time of all processes until its events have settled, against one that does nothing.

The calls are measured one after the other on the same stack, each after a warm-up. The benchmark's own process, which
makes the calls, is no part of the figures. The statements are counted in a phase of their own.
"""

import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import grpc

from benchmarks import databases, events, nothing
from benchmarks.callers import ACCOUNTS, BATCH, Call, Calls, made
from benchmarks.costs import NOTHING, Cost, results
from benchmarks.databases import Databases
from benchmarks.events import Events
from benchmarks.processes import SANDBOX, Processes
from benchmarks.profiles import Profiler
from benchmarks.result import Result
from benchmarks.statements import OPTIONS, Counted, StatementLog
from devstack.health import serving
from devstack.layout import inherited
from devstack.ports import free_port
from devstack.processes.child import Child
from devstack.stack import Stack
from postflow.drafts.v1 import drafts_service_pb2
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub
from testkit.eventually import eventually

CALLERS = 32
_COUNTED = 320
"""Calls of the warm-up, and as many whose statements are counted; fewer of those that take many items."""
_TIMES_CHEAP = 5
"""What is cheap is measured more often: a process's CPU time is known to 10 ms."""


class Method(NamedTuple):
    name: str
    call: Call
    times: int = 1
    """How many items are measured for each call of the others."""
    items: int = 1
    """Items of each call; the figures are per item."""

    @property
    def counted(self) -> int:
        """Calls of the warm-up, and as many whose statements are counted."""
        return max(CALLERS, _COUNTED // self.items)

    def measured(self, calls: int) -> int:
        """Returns how often it is called where each of the others is called so often."""
        return max(CALLERS, calls * self.times // self.items)


async def measure(calls: int, profiler: Profiler, *, listing: bool = False) -> list[Result]:
    """Runs a stack of its own; `listing` prints the statements of each call to stderr."""
    log = StatementLog()
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with (
            Stack(Path(folder), durable=True, postgres_options=OPTIONS, on_line=log.on_line) as stack,
            _nothing_served() as (target, pid),
            databases.opened(stack) as stored,
            events.opened(stack) as streams,
            _channels(stack) as channels,
            grpc.aio.insecure_channel(target) as empty,
        ):
            site = _Site(stack, Processes.of(stack, others={nothing.NAME: pid}), stored, streams, log, profiler)
            costs = [await site.cost(method, calls) async for method in _methods(site, channels, empty, calls)]
    if listing:
        _list(site.texts)
    return results(costs)


async def _methods(
    site: "_Site", channels: Mapping[str, grpc.aio.Channel], empty: grpc.aio.Channel, calls: int
) -> AsyncIterator[Method]:
    """Yields the methods in an order in which each finds what it needs."""
    everything = calls + 2 * _COUNTED
    posts, queued = Calls(channels), Calls(channels, "queued")
    await made(ACCOUNTS, CALLERS, posts.connect)
    await made(everything, CALLERS, queued.create)
    await made(everything, CALLERS, queued.approve)
    await site.streams.settled(lambda: None)
    answers = DraftsServiceStub(empty)
    request = drafts_service_pb2.GetDraftRequest(organization_id="org-0", draft_id="draft-0")
    yield Method(NOTHING, lambda _: answers.GetDraft(request), times=_TIMES_CHEAP)
    yield Method("CreateDraft", posts.create)
    yield Method("ApproveDraft", posts.approve)
    yield Method("ScheduleAt", posts.schedule_at)
    yield Method("GetDraft", posts.get)
    yield Method("AddToQueue", queued.add_to_queue)
    yield Method("BatchCreateDrafts", posts.create_batch, times=_TIMES_CHEAP, items=BATCH)
    yield Method("BatchApproveDrafts", posts.approve_batch, times=_TIMES_CHEAP, items=BATCH)


class _Site:
    """A running stack and what is read of it."""

    def __init__(
        self,
        stack: Stack,
        processes: Processes,
        stored: Databases,
        streams: Events,
        log: StatementLog,
        profiler: Profiler,
    ) -> None:
        assert stack.postgres is not None
        self._stack, self._profiler = stack, profiler
        self.streams = streams
        self.texts: dict[str, Mapping[str, float]] = {}
        """How often each statement is executed per item, by method."""
        self._postgres = stack.postgres
        self._processes, self._stored, self._log = processes, stored, log

    async def cost(self, method: Method, calls: int) -> Cost:
        print(f"measuring: {method.name}", file=sys.stderr, flush=True)
        await made(method.counted, CALLERS, method.call)
        await self.streams.settled(lambda: None)
        counted = await self._counted(method)
        calls = method.measured(calls)
        items = calls * method.items
        before = await self._written()
        async with self._profiler.recording(self._stack, f"calls-{method.name}".replace(" ", "-")):
            cpu, began = self._processes.cpu(), time.perf_counter()
            await made(calls, CALLERS, method.call, first=2 * method.counted)
            elapsed = time.perf_counter() - began
            used = await self.streams.settled(lambda: self._processes.since(cpu))
        after = await self._written()
        envelopes, wal = ((b - a) / items for a, b in zip(before, after, strict=True))
        return Cost(
            method=method.name,
            cpu={name: seconds / items * 1e6 for name, seconds in used.items() if name != SANDBOX},
            statements=counted.statements.total() / (method.counted * method.items),
            transactions=counted.transactions.total() / (method.counted * method.items),
            wal=wal,
            events=await self.streams.events(before[0], after[0]) / items,
            envelopes=envelopes,
            per_second=items / elapsed,
        )

    async def _counted(self, method: Method) -> Counted:
        await self._log.begin(self._postgres)
        await made(method.counted, CALLERS, method.call, first=method.counted)
        await self.streams.settled(lambda: None)
        counted = await self._log.end(self._postgres)
        items = method.counted * method.items
        self.texts[method.name] = {text: times / items for text, times in counted.texts.most_common()}
        return counted

    async def _written(self) -> tuple[int, int]:
        """Returns the messages of EVENTS and the bytes of WAL so far."""
        return await self.streams.envelopes(), await self._stored.wal()


@asynccontextmanager
async def _nothing_served() -> AsyncIterator[tuple[str, int]]:
    """Runs the server whose call does nothing; yields its address and its process."""
    target = f"127.0.0.1:{free_port()}"
    settings = {"POSTFLOW_NOTHING_LISTEN": target, "POSTFLOW_NOTHING_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
    command = [sys.executable, "-m", "benchmarks.nothing"]
    child = await Child.start(command, name=nothing.NAME, environment=inherited() | settings)
    try:
        await eventually(lambda: serving(target), within=30)
        yield target, child.pid
    finally:
        await child.stop((signal.SIGTERM, 10.0))


@asynccontextmanager
async def _channels(stack: Stack) -> AsyncIterator[Mapping[str, grpc.aio.Channel]]:
    async with AsyncExitStack() as channels:
        yield {
            service: await channels.enter_async_context(grpc.aio.insecure_channel(target))
            for service, target in stack.targets.items()
        }


def _list(texts: Mapping[str, Mapping[str, float]]) -> None:
    for method, counts in texts.items():
        print(f"\n{method}: statements per item", file=sys.stderr)
        for text, times in counts.items():
            if times >= 0.01:
                print(f"  {times:6.2f}  {text[:180]}", file=sys.stderr)
