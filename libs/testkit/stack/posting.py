"""Posts under faults: calls are repeated until they are answered, what was answered is remembered and checked."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import TypeVar

import grpc

from devstack.stack import Stack
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from testkit.eventually import eventually
from testkit.stack import history, remains
from testkit.stack.edits import Edit, Place
from testkit.stack.history import Acknowledged, History
from testkit.stack.tenant import Tenant, target

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
        self._edits: list[Edit] = []
        self._texts: dict[str, list[str]] = {}
        self._ids = Uuid7Source()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def schedule(self, *drafts: str, ahead: float = 0.0) -> datetime:
        """Connects, writes and approves a draft for each id. When all are written (nobody knows how long that takes),
        schedules them for one instant so many seconds ahead, and returns it."""
        await self.prepare(*drafts)
        due = SystemClock().now() + timedelta(seconds=ahead)
        await self._for_each(lambda draft: self.schedule_one(draft, due, ""), drafts)
        return due

    async def prepare(self, *drafts: str, channels: Sequence[str] = ("facebook",)) -> None:
        await self._for_each(lambda draft: self.write(draft, channels=channels), drafts)

    async def schedule_each(self, dues: Mapping[str, datetime]) -> None:
        """Drafts that are written, each for its time; again, too, where an earlier slot has ended."""
        await self._for_each(lambda draft: self.schedule_one(draft, dues[draft], self._ids.new()), list(dues))

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

    def ledger(self) -> Sequence[history.Row]:
        ours = f"{self.tenant.organization_id}."
        return [line for line in self.stack.sandbox.ledger() if line["account"].startswith(ours)]

    def effects(self) -> Sequence[history.Row]:
        return [line for line in self.ledger() if line["kind"] == "effect"]

    async def history(self) -> History:
        return await remains.read(
            self.stack.database_urls,
            {self.tenant.organization_id},
            self.ledger,
            acknowledged=Acknowledged(
                drafts=frozenset(self._drafts), slots=frozenset(self._slots), edits=tuple(self._edits)
            ),
        )

    async def check(self, *, within: float = 60.0, unanswerable: Set[str] = frozenset()) -> History:
        """Waits until every promise is kept, and returns what was read; a broken one is told at the end of the time.

        What was delivered to a process that was killed is delivered again after five seconds (`ack_wait`).
        """
        return await self._wait_for(lambda read: history.violations(read, unanswerable=unanswerable), within)

    async def check_all_ended(self, *, within: float = 60.0) -> History:
        """As `check`; moreover nothing is left to be done."""
        return await self._wait_for(lambda read: [*history.violations(read), *history.open_jobs(read)], within)

    async def check_all_published(self, *, within: float = 60.0) -> History:
        """As `check`; moreover every post is out."""
        read = await self._wait_for(lambda read: [*history.violations(read), *_others(read, {"PUBLISHED"})], within)
        assert len(read.effects) == len(read.jobs) >= len(self._drafts)
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

    async def write(self, draft: str, *, channels: Sequence[str] = ("facebook",), text: str = "") -> None:
        """Connects an account, writes a draft for it and approves it. What has been done already stays as it is."""
        account = f"of-{draft}"
        text = text or f"Text of {draft}"
        targets = [target(account, channel) for channel in channels]
        await self.insist(lambda: self.tenant.connect(account))
        await self.insist(lambda: self.tenant.create(draft, text, targets, approved=False))
        self._drafts.add((self.tenant.organization_id, draft))
        self._texts[draft] = [text]
        await self.approve(draft)

    async def approve(self, draft: str) -> None:
        await self.insist(lambda: self.tenant.approve(draft))

    async def change_text(self, draft: str, text: str, *, request_id: str = "") -> Sequence[str]:
        """Changes it until there is an answer, which is held against the ledger; the jobs that it names."""
        older, self._texts[draft] = tuple(self._texts[draft]), [*self._texts[draft], text]
        return await self._edit(draft, request_id, text=text, older=frozenset(older) - {text})

    async def take_out(self, draft: str, *channels: str, left: Sequence[str], request_id: str = "") -> Sequence[str]:
        removed = frozenset((f"of-{draft}", channel, "") for channel in channels)
        return await self._edit(draft, request_id, channels=left, removed=removed)

    async def put_back(self, draft: str, *channels: str, request_id: str = "") -> Sequence[str]:
        """These are all channels then."""
        return await self._edit(draft, request_id, channels=channels)

    async def _edit(
        self,
        draft: str,
        request_id: str,
        *,
        text: str | None = None,
        channels: Sequence[str] | None = None,
        older: Set[str] = frozenset(),
        removed: Set[Place] = frozenset(),
    ) -> Sequence[str]:
        targets = None if channels is None else [target(f"of-{draft}", channel) for channel in channels]
        request_id = request_id or self._ids.new()
        called = SystemClock().now()
        answer = await self.insist(lambda: self.tenant.change(draft, text=text, targets=targets, request_id=request_id))
        in_flight = tuple(answer.in_flight_post_job_ids)
        self._edits.append(
            Edit(
                organization_id=self.tenant.organization_id,
                draft_id=draft,
                called=called,
                answered=SystemClock().now(),
                older=older,
                removed=removed,
                in_flight=frozenset(in_flight),
            )
        )
        return in_flight

    async def schedule_one(self, draft: str, due: datetime, request_id: str) -> None:
        slots = await self.insist(lambda: self.tenant.schedule_at(draft, due, request_id=request_id))
        self._slots |= {(self.tenant.organization_id, slot.id) for slot in slots}

    def new_request_id(self) -> str:
        return self._ids.new()

    async def _for_each(self, step: Callable[[str], Awaitable[None]], drafts: Sequence[str]) -> None:
        async def in_turn(draft: str) -> None:
            async with self._room:
                await step(draft)

        async with asyncio.TaskGroup() as group:
            for draft in drafts:
                group.create_task(in_turn(draft))


def _others(read: History, states: Set[str]) -> list[str]:
    return [f"job {job['id']} is {job['state']}" for job in read.jobs if job["state"] not in states]
