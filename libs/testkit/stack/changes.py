"""Changes that an author makes to a draft close to its time, one or two at once."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import grpc

from servicekit.clock import SystemClock
from testkit.stack.calling import LEFT_ALONE
from testkit.stack.posting import Posting

T = TypeVar("T")

CHANNELS = ("facebook", "instagram_feed")
REFUSALS = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED, grpc.StatusCode.INVALID_ARGUMENT})
"""Codes for an author who is too late, or whose edit races another one."""
SENT_OR_OUT = LEFT_ALONE | {""}


class Changes:
    """Changes of one draft, whose account is at that provider."""

    def __init__(
        self, posting: Posting, draft: str, chance: random.Random, *, channels: Sequence[str], provider: str
    ) -> None:
        self._posting = posting
        self._draft = draft
        self._account = f"of-{draft}"
        self._chance = chance
        self._channels = channels
        self._provider = provider
        self._texts = 0

    @property
    def all(self) -> Mapping[Callable[[], Awaitable[object]], int]:
        """Returns each change with its weight."""
        return {
            self.rest: 5,
            self.edit: 3,
            self.edit_twice: 1,
            self.retarget: 2,
            self.remove: 2,
            self.move: 2,
            self.pause: 2,
            self.publish: 3,
            self.publish_twice: 1,
            self.publish_beside_an_edit: 2,
            self.publish_beside_a_removal: 3,
            self.publish_an_older_text: 1,
            self.connect_again: 4,
            self.cap: 3,
        }

    async def rest(self) -> None:
        pass

    async def edit(self) -> None:
        text, request_id = self.text(), self._posting.new_request_id()
        for _ in range(self._chance.choice((1, 1, 2))):  # a repeat gets the first call's answer
            await self.attempt(lambda: self._posting.change_text(self._draft, text, request_id=request_id))

    async def edit_twice(self) -> None:
        await self.edit()
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        await self.edit()

    async def retarget(self) -> None:
        """Removes the last channel and restores it; a draft with one channel gets the other one meanwhile."""
        left = tuple(channel for channel in CHANNELS if channel != self._channels[-1])
        await self.attempt(lambda: self._posting.remove_channels(self._draft, self._channels[-1], left=left))
        await asyncio.sleep(self._chance.uniform(0, 1))
        await self.attempt(lambda: self._posting.put_channels(self._draft, *self._channels))

    async def remove(self) -> None:
        """Takes the draft out of the queue and, some time later, puts it back."""
        await self._take_out()
        await asyncio.sleep(self._chance.uniform(0, 3))

    async def _take_out(self) -> None:
        await self.attempt(lambda: self._posting.remove(self._draft))

    async def move(self) -> None:
        due = SystemClock().now() + timedelta(seconds=self._chance.uniform(0, 4))
        await self.attempt(lambda: self._posting.move(self._draft, due))

    async def pause(self) -> None:
        await self.attempt(lambda: self._posting.pause(self._draft))
        await asyncio.sleep(self._chance.uniform(0, 3))
        await self._posting.resume(self._draft)

    async def publish(self) -> bool:
        """Sends the draft at once; returns whether each post of it is started or out, or may be."""
        times = self._chance.choice((1, 1, 2))
        reasons = await self.attempt(
            lambda: self._posting.publish_now(self._draft, times=times, over_cap=self._chance.random() < 0.2)
        )
        return reasons is not None and reasons <= SENT_OR_OUT

    async def publish_twice(self) -> None:
        await _at_once(self.publish, self.publish)

    async def publish_beside_an_edit(self) -> None:
        await _at_once(self.publish, self.edit)

    async def publish_beside_a_removal(self) -> None:
        await _at_once(self.publish, self._take_out)

    async def publish_an_older_text(self) -> None:
        saved = await self._posting.calling.saved(self._draft)
        await self.edit()
        await self.attempt(lambda: self._posting.publish_now(self._draft, saved=saved))

    async def connect_again(self) -> None:
        await self._posting.accounts.disconnect(self._account, self._posting.new_request_id())
        if self._chance.random() < 0.3:
            await self.publish()
        await asyncio.sleep(self._chance.uniform(0, 3))
        await self._posting.accounts.connect_again(self._account, self._provider)

    async def cap(self) -> None:
        """Caps the account below what is to go out, and lets more go later."""
        await self._cap(self._chance.choice((0, 0, 1)), below_used=self._chance.random() < 0.3)
        if self._chance.random() < 0.3:
            await self.publish()
        await asyncio.sleep(self._chance.uniform(0, 2))
        await self._cap(self._chance.choice((20, 20, None)))

    async def _cap(self, most: int | None, *, below_used: bool = False) -> None:
        request_id = self._posting.new_request_id()
        await self.attempt(lambda: self._posting.accounts.cap(self._account, most, request_id, below_used=below_used))

    async def attempt(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Makes a call that may be refused; returns None if it is."""
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() not in REFUSALS:
                raise
        return None

    def text(self, *, mark: str = "") -> str:
        """Returns a text that the draft has not had before."""
        self._texts += 1
        return " ".join(filter(None, (f"Text {self._texts} of {self._draft}", mark)))


async def _at_once(*calls: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(_awaited(call))


async def _awaited(call: Callable[[], Awaitable[object]]) -> None:
    await call()
