"""Posts under faults: calls are repeated until they are answered, what was answered is remembered and checked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from datetime import datetime, timedelta
from typing import TypeVar

import grpc

from devstack.supervisor import Stack
from servicekit.clock import SystemClock
from testkit import history
from testkit.eventually import eventually
from testkit.history import Acknowledged, History
from testkit.tenant import Tenant, target

T = TypeVar("T")

AT_ONCE = 16
BREATH = 0.25
PATIENCE = 120.0
"""Longer than a service may take to die of what a test asks of it, and then to start again (`START_SECONDS`)."""
AWAY = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})


class Posting:
    """The posts of one organization, each on an account of its own, so that all may be due at the same instant."""

    def __init__(self, stack: Stack, tenant: Tenant, *, patience: float = PATIENCE) -> None:
        """`patience` is how long, in seconds, a call is repeated while its service is away."""
        self.stack = stack
        self.tenant = tenant
        self._patience = patience
        self._drafts: set[tuple[str, str]] = set()
        self._slots: set[tuple[str, str]] = set()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def schedule(self, *drafts: str, ahead: float = 0.0) -> datetime:
        """Connects, writes and approves a draft for each id. When all are written (nobody knows how long that takes),
        schedules them for one instant so many seconds ahead, and returns it."""
        await self._for_each(self.write, drafts)
        due = SystemClock().now() + timedelta(seconds=ahead)
        await self._for_each(lambda draft: self._schedule(draft, due), drafts)
        return due

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Calls until there is an answer. The calls of `Tenant` may be repeated."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() not in AWAY or loop.time() > deadline:
                    raise
            await asyncio.sleep(BREATH)

    def effects(self) -> Sequence[history.Row]:
        ours = f"{self.tenant.organization_id}."
        return [effect for effect in self.stack.sandbox.effects() if effect["account"].startswith(ours)]

    async def history(self) -> History:
        return await history.read(
            self.stack.database_urls,
            {self.tenant.organization_id},
            self.effects,
            acknowledged=Acknowledged(drafts=frozenset(self._drafts), slots=frozenset(self._slots)),
        )

    async def check(self, *, within: float = 60.0, unanswerable: Set[str] = frozenset()) -> History:
        """Waits until every promise is kept, and returns what was read; a broken one is told at the end of the time.

        What was delivered to a process that was killed is delivered again after five seconds (`ack_wait`).
        """
        return await self._wait_for(lambda read: history.violations(read, unanswerable=unanswerable), within)

    async def check_all_ended(self, *, within: float = 60.0) -> History:
        """As `check`; moreover nothing is left to be done."""
        return await self._wait_for(lambda read: [*history.violations(read), *_others(read, history.ENDED)], within)

    async def check_all_published(self, *, within: float = 60.0) -> History:
        """As `check`; moreover every post is out."""
        read = await self._wait_for(lambda read: [*history.violations(read), *_others(read, {"PUBLISHED"})], within)
        assert len(read.effects) == len(read.jobs) >= len(self._slots)
        return read

    async def _wait_for(self, problems: Callable[[History], list[str]], within: float) -> History:
        async def kept() -> History:
            read = await self.history()
            found = problems(read)
            if found:
                await asyncio.sleep(BREATH)
            assert not found, "\n".join([*found[:20], f"({len(found)} in all)"])
            return read

        return await eventually(kept, within=within)

    async def until_slots(self, state: str, *, within: float = 20.0) -> None:
        """All of them have that state in Queue's own table."""

        async def reached() -> bool:
            states = {slot["state"] for slot in (await self.history()).slots}
            assert states == {state}, states
            return True

        await eventually(reached, within=within)

    async def write(self, draft: str) -> None:
        """Connects an account, writes a draft for it and approves it. What has been done already stays as it is."""
        account = f"of-{draft}"
        await self.insist(lambda: self.tenant.connect(account))
        await self.insist(lambda: self.tenant.create(draft, f"Text of {draft}", [target(account)], approved=False))
        self._drafts.add((self.tenant.organization_id, draft))
        await self.insist(lambda: self.tenant.approve(draft))

    async def _schedule(self, draft: str, due: datetime) -> None:
        slots = await self.insist(lambda: self.tenant.schedule_at(draft, due))
        self._slots |= {(self.tenant.organization_id, slot.id) for slot in slots}

    async def _for_each(self, step: Callable[[str], Awaitable[None]], drafts: Sequence[str]) -> None:
        async def in_turn(draft: str) -> None:
            async with self._room:
                await step(draft)

        async with asyncio.TaskGroup() as group:
            for draft in drafts:
                group.create_task(in_turn(draft))


def _others(read: History, states: Set[str]) -> list[str]:
    return [f"job {job['id']} is {job['state']}" for job in read.jobs if job["state"] not in states]
