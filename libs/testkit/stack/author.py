"""An author, who writes a draft, schedules it, changes it close to its time, and follows it to its end."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import grpc

from servicekit.clock import SystemClock
from testkit.stack.nemesis import REFUSED
from testkit.stack.posting import Posting

T = TypeVar("T")

CHANNELS = ("facebook", "instagram_feed")
MODES = {"lookup": 65, "keyed": 30, "blind": 5}
# One provider of each class.
PROVIDERS = {"sandbox": 40, "sandbox-container": 30, "sandbox-lookup": 25, "sandbox-blind": 5}
REFUSALS = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED, grpc.StatusCode.INVALID_ARGUMENT})
"""Codes for an author who is too late, or whose edit races another one."""
ASK_SECONDS = 0.5
FAILED = frozenset({"FAILED", "MISSED"})
ENDED = FAILED | {"PUBLISHED", "NEEDS_ATTENTION", "CANCELED"}
WITHOUT_TIME = frozenset({"PENDING", "CANCELED"})
SCHEDULED_AGAIN = 2
"""Number of times that an author reschedules a failed draft."""


class Author:
    def __init__(self, posting: Posting, draft: str, chance: random.Random) -> None:
        self._posting = posting
        self._draft = draft
        self._chance = chance
        self._channels = CHANNELS[: chance.choice((1, 1, 2))]
        self._texts = 0

    @property
    def _changes(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._rest,
            self._edit,
            self._edit_twice,
            self._retarget,
            self._remove,
            self._move,
            self._pause,
        )

    async def live(self, ahead: float, until: asyncio.Event) -> None:
        """Leads a draft due in `ahead` seconds to its end; `until` is set once every fault is repaired."""
        (mode,) = self._chance.choices(list(MODES), list(MODES.values()))
        external = self._posting.tenant.external(f"of-{self._draft}")
        await self._posting.stack.sandbox.mode(external, mode)
        (provider,) = self._chance.choices(list(PROVIDERS), list(PROVIDERS.values()))
        if provider == "sandbox-container":
            await self._posting.stack.sandbox.account(external, media_seconds=self._chance.choice((0, 0, 0.5, 2)))
        refused = self._chance.random() < 0.1
        text = self._text(refused=refused)
        await self._posting.write(self._draft, channels=self._channels, text=text, provider=provider)
        due, request_id = SystemClock().now() + timedelta(seconds=ahead), self._posting.new_request_id()
        for _ in range(self._chance.choice((1, 1, 2))):
            await self._attempt(lambda: self._posting.schedule_one(self._draft, due, request_id))
        (change,) = self._chance.choices(self._changes, (5, 3, 1, 2, 2, 2, 2))
        await self._reach(due + timedelta(seconds=self._chance.uniform(-0.6, 0.6)))
        await change()
        await self._attempt(lambda: self._posting.approve(self._draft))
        await self._see_through(until)

    async def _rest(self) -> None:
        pass

    async def _edit(self) -> None:
        text, request_id = self._text(), self._posting.new_request_id()
        for _ in range(self._chance.choice((1, 1, 2))):  # a repeat gets the first call's answer
            await self._attempt(lambda: self._posting.change_text(self._draft, text, request_id=request_id))

    async def _edit_twice(self) -> None:
        await self._edit()
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        await self._edit()

    async def _retarget(self) -> None:
        """Removes the last channel and restores it; a draft with one channel gets the other one meanwhile."""
        left = tuple(channel for channel in CHANNELS if channel != self._channels[-1])
        await self._attempt(lambda: self._posting.remove_channels(self._draft, self._channels[-1], left=left))
        await asyncio.sleep(self._chance.uniform(0, 1))
        await self._attempt(lambda: self._posting.put_channels(self._draft, *self._channels))

    async def _remove(self) -> None:
        """Takes the draft out of the queue and, some time later, puts it back."""
        await self._attempt(lambda: self._posting.remove(self._draft))
        await asyncio.sleep(self._chance.uniform(0, 3))

    async def _move(self) -> None:
        due = SystemClock().now() + timedelta(seconds=self._chance.uniform(0, 4))
        await self._attempt(lambda: self._posting.move(self._draft, due))

    async def _pause(self) -> None:
        await self._attempt(lambda: self._posting.pause(self._draft))
        await asyncio.sleep(self._chance.uniform(0, 3))
        await self._posting.resume(self._draft)

    async def _see_through(self, until: asyncio.Event) -> None:
        """Rewrites and reschedules a draft that failed; schedules one that has no time."""
        again = 0
        while again < SCHEDULED_AGAIN:
            states = await self._states()
            if states and states <= ENDED and not states & FAILED and states != {"CANCELED"}:
                return
            if states & (FAILED | WITHOUT_TIME) and states <= ENDED | WITHOUT_TIME:
                await self._start_again()
                again += 1
            elif until.is_set():
                return
            await asyncio.sleep(ASK_SECONDS)

    async def _start_again(self) -> None:
        text = self._text()
        await self._attempt(lambda: self._posting.change_text(self._draft, text))
        await self._attempt(lambda: self._posting.approve(self._draft))
        due = SystemClock().now() + timedelta(seconds=self._chance.uniform(0, 2))
        request_id = self._posting.new_request_id()
        await self._attempt(lambda: self._posting.schedule_one(self._draft, due, request_id))

    async def _states(self) -> set[str]:
        return await self._posting.insist(lambda: self._posting.tenant.states(self._draft))

    async def _reach(self, moment: datetime) -> None:
        await asyncio.sleep(max((moment - SystemClock().now()).total_seconds(), 0))

    async def _attempt(self, call: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() not in REFUSALS:
                raise
        return None

    def _text(self, *, refused: bool = False) -> str:
        self._texts += 1
        return f"Text {self._texts} of {self._draft}" + (f" {REFUSED}" if refused else "")
