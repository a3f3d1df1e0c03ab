"""Posts under faults: repeats each call until it is answered, remembers what was acknowledged, and checks it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import TypeVar

import asyncpg
import grpc

from devstack.stack import Stack
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from testkit.eventually import eventually
from testkit.stack import remains
from testkit.stack.accounts import Accounts
from testkit.stack.calling import Calling
from testkit.stack.edits import Edit, Place
from testkit.stack.history import Acknowledged, History, Row
from testkit.stack.promises import open_jobs, violations
from testkit.stack.stopping import DISCONNECTION, HOLD, PAUSE, REFUSAL, REMOVAL, Stopping
from testkit.stack.tenant import Tenant, target

T = TypeVar("T")

AT_ONCE = 16
BREATH = 0.25
PATIENCE = 120.0
"""Seconds; longer than a service takes to hit an armed failpoint and to start again (`START_SECONDS`)."""
UNREACHABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})


class Posting:
    """The posts of one organization, each on an account of its own, so that all may be due at the same instant."""

    def __init__(self, stack: Stack, tenant: Tenant, *, patience: float = PATIENCE) -> None:
        """Repeats a call for at most `patience` seconds while its service is unreachable."""
        self.stack = stack
        self.tenant = tenant
        self._patience = patience
        self._drafts: set[tuple[str, str]] = set()
        self._slots: set[tuple[str, str]] = set()
        self._edits: list[Edit] = []
        self.answers = Counter[str]()
        """How many calls of each kind were answered OK."""
        self.stopping = Stopping(tenant, self.insist, self.answers)
        self.accounts = Accounts(tenant, self.insist, self.answers, self.stopping)
        self.calling = Calling(
            tenant, self.insist, self.answers, self.stopping, lambda: self.stack.database_urls["drafts"]
        )
        self._with_slots = set[str]()
        self._texts: dict[str, list[str]] = {}
        self._ids = Uuid7Source()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def schedule(self, *drafts: str, ahead: float = 0.0) -> datetime:
        """Connects, writes and approves a draft for each id; then schedules all for one instant and returns it.

        The instant is `ahead` seconds after the last draft is written, because writing takes an unknown time.
        """
        await self.prepare(*drafts)
        due = SystemClock().now() + timedelta(seconds=ahead)
        await self._for_each(lambda draft: self.schedule_one(draft, due, ""), drafts)
        return due

    async def prepare(self, *drafts: str, channels: Sequence[str] = ("facebook",)) -> None:
        await self._for_each(lambda draft: self.write(draft, channels=channels), drafts)

    async def schedule_each(self, dues: Mapping[str, datetime]) -> None:
        """Schedules each written draft for its time, also one whose earlier slot has ended."""
        await self._for_each(lambda draft: self.schedule_one(draft, dues[draft], self._ids.new()), list(dues))

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call, or a read of a database, until there is an answer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() not in UNREACHABLE or loop.time() > deadline:
                    raise
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                if loop.time() > deadline:
                    raise
            await asyncio.sleep(BREATH)

    def ledger(self) -> Sequence[Row]:
        prefix = f"{self.tenant.organization_id}."
        return [line for line in self.stack.sandbox.ledger() if line["account"].startswith(prefix)]

    def effects(self) -> Sequence[Row]:
        return [line for line in self.ledger() if line["kind"] == "effect"]

    async def history(self) -> History:
        return await remains.read(
            self.stack.database_urls,
            {self.tenant.organization_id},
            self.ledger,
            acknowledged=Acknowledged(
                drafts=frozenset(self._drafts),
                slots=frozenset(self._slots),
                edits=tuple(self._edits),
                removals=self.stopping.of(REMOVAL),
                asked_to_remove=self.stopping.asked_to_remove,
                pauses=self.stopping.of(PAUSE),
                holds=self.stopping.of(HOLD),
                disconnections=self.stopping.of(DISCONNECTION),
                refusals=self.stopping.of(REFUSAL),
                called=self.calling.called,
                caps=self.accounts.caps,
            ),
        )

    async def check(self, *, within: float = 60.0, unanswerable: Set[str] = frozenset()) -> History:
        """Waits until every promise is kept and returns the history; AssertionError names the broken ones in the end.

        Messages that were delivered to a killed process are redelivered after five seconds (`ack_wait`).
        """
        return await self._wait_for(lambda read: violations(read, unanswerable=unanswerable), within)

    async def check_all_ended(self, *, within: float = 60.0) -> History:
        """Does the same as `check`, and waits until no job is left open."""
        return await self._wait_for(lambda read: [*violations(read), *open_jobs(read)], within)

    async def check_all_published(self, *, within: float = 60.0) -> History:
        """Does the same as `check`, and waits until every post is published."""
        read = await self._wait_for(lambda read: [*violations(read), *_others(read, {"PUBLISHED"})], within)
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
        """Waits until all slots have that state in Queue's table."""

        async def reached() -> bool:
            states = {slot["state"] for slot in (await self.history()).slots}
            assert states == {state}, states
            return True

        await eventually(reached, within=within)

    async def write(
        self,
        draft: str,
        *,
        channels: Sequence[str] = ("facebook",),
        text: str = "",
        provider: str = "sandbox",
        brand: str = "",
        comments: Sequence[str] = (),
    ) -> None:
        """Connects an account, writes a draft for it and approves it; skips the steps that were done before."""
        account = f"of-{draft}"
        text = text or f"Text of {draft}"
        targets = [target(account, channel) for channel in channels]
        await self.insist(lambda: self.tenant.connect(account, provider=provider))
        await self.insist(
            lambda: self.tenant.create(draft, text, targets, approved=False, brand=brand, comments=comments)
        )
        self._drafts.add((self.tenant.organization_id, draft))
        self._texts[draft] = [text]
        await self.approve(draft)

    async def approve(self, draft: str) -> None:
        await self.insist(lambda: self.tenant.approve(draft))

    async def change_text(self, draft: str, text: str, *, request_id: str = "") -> Sequence[str]:
        """Changes the text and returns the jobs that the answer names; `check` compares the answer with the ledger."""
        older, self._texts[draft] = tuple(self._texts[draft]), [*self._texts[draft], text]
        return await self._edit(draft, request_id, text=text, older=frozenset(older) - {text})

    async def remove_channels(
        self, draft: str, *channels: str, left: Sequence[str], request_id: str = ""
    ) -> Sequence[str]:
        removed = frozenset((f"of-{draft}", channel, "") for channel in channels)
        return await self._edit(draft, request_id, channels=left, removed=removed)

    async def put_channels(self, draft: str, *channels: str, request_id: str = "") -> Sequence[str]:
        """Makes these all the channels of the draft."""
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
        self.answers["UpdateDraft"] += 1
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
        self._with_slots.add(draft)
        for what in (REMOVAL, REFUSAL):
            self.stopping.ending(what, f"of-{draft}")
        slots = await self.insist(lambda: self.tenant.schedule_at(draft, due, request_id=request_id))
        self._slots |= {(self.tenant.organization_id, slot.id) for slot in slots}
        self.answers["ScheduleAt"] += 1

    async def remove(self, draft: str) -> None:
        """Removes the draft's live slot, if it has one."""
        await self.stopping.remove(draft, self._ids.new())

    async def move(self, draft: str, due: datetime) -> None:
        """Moves the draft's live slot, if it has one."""
        await self.stopping.move(draft, due, self._ids.new())

    async def pause(self, draft: str) -> None:
        await self.stopping.pause(f"of-{draft}", self._ids.new())

    async def resume(self, draft: str) -> None:
        await self.stopping.resume(f"of-{draft}", self._ids.new())

    async def publish_now(
        self, draft: str, *, saved: DraftSaved | None = None, over_cap: bool = False, times: int = 1
    ) -> Set[str]:
        """Sends the draft at once, as `saved` if that was read before; returns the reasons, "" for what was started."""
        return await self.calling.publish(
            saved or await self.calling.saved(draft),
            self._ids.new(),
            texts=tuple(self._texts[draft]),
            has_slot=draft in self._with_slots,
            over_cap=over_cap,
            times=times,
        )

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
