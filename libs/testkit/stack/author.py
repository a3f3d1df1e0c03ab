"""An author, who writes a draft, gives it a time or sends it at once, changes it, and follows it to its end."""

import asyncio
import random
from datetime import datetime, timedelta

from servicekit.clock import SystemClock
from testkit.stack.changes import CHANNELS, Changes
from testkit.stack.holder import BRANDS
from testkit.stack.nemesis import REFUSED
from testkit.stack.posting import Posting

MODES = {"lookup": 65, "keyed": 30, "blind": 5}
# One provider of each class.
PROVIDERS = {"sandbox": 40, "sandbox-container": 30, "sandbox-lookup": 25, "sandbox-blind": 5}
COMMENTS = ("A first comment", "A second comment")
LATER = timedelta(hours=1)
"""Behind the end of a run: what has its slot then goes out by PublishNow alone."""
ASK_SECONDS = 0.5
FAILED = frozenset({"FAILED", "MISSED"})
ENDED = FAILED | {"PUBLISHED", "NEEDS_ATTENTION", "CANCELED"}
WITHOUT_TIME = frozenset({"PENDING", "CANCELED"})
STARTED_AGAIN = 2
"""Number of times that an author reschedules or retries a failed draft."""


class Author:
    def __init__(self, posting: Posting, draft: str, chance: random.Random) -> None:
        self._posting = posting
        self._draft = draft
        self._chance = chance
        (self._provider,) = chance.choices(list(PROVIDERS), list(PROVIDERS.values()))
        self._channels = CHANNELS[: chance.choice((1, 1, 2))]
        self._changes = Changes(posting, draft, chance, channels=self._channels, provider=self._provider)

    async def live(self, ahead: float, until: asyncio.Event) -> None:
        """Leads a draft due in `ahead` seconds to its end; `until` is set once every fault is repaired."""
        await self._write()
        (way,) = self._chance.choices(
            (self._schedule, self._publish_before_its_slot, self._publish_without_slot), (8, 1, 1)
        )
        await way(SystemClock().now() + timedelta(seconds=ahead))
        await self._see_through(until)

    async def _write(self) -> None:
        (mode,) = self._chance.choices(list(MODES), list(MODES.values()))
        external = self._posting.tenant.external(f"of-{self._draft}")
        await self._posting.stack.sandbox.mode(external, mode)
        if self._provider == "sandbox-container":
            await self._posting.stack.sandbox.account(external, media_seconds=self._chance.choice((0, 0, 0.5, 2)))
        text = self._changes.text(mark=REFUSED if self._chance.random() < 0.1 else "")
        brand = self._chance.choice(BRANDS)
        comments = COMMENTS[: self._chance.choice((0, 0, 0, 1, 2))]
        await self._posting.write(
            self._draft,
            channels=self._channels,
            text=text,
            provider=self._provider,
            brand=brand,
            comments=[f"{comment} on {self._draft}" for comment in comments],
        )

    async def _schedule(self, due: datetime) -> None:
        request_id = self._posting.new_request_id()
        for _ in range(self._chance.choice((1, 1, 2))):
            await self._changes.attempt(lambda: self._posting.schedule_one(self._draft, due, request_id))
        await self._change_at(due)

    async def _publish_before_its_slot(self, due: datetime) -> None:
        request_id = self._posting.new_request_id()
        await self._changes.attempt(lambda: self._posting.schedule_one(self._draft, due + LATER, request_id))
        await self._change_at(due)
        await self._publish_until_started()

    async def _publish_without_slot(self, due: datetime) -> None:
        await self._change_at(due)
        await self._publish_until_started()

    async def _change_at(self, due: datetime) -> None:
        """Makes a change at about that time, or very close to it."""
        changes = self._changes.all
        (change,) = self._chance.choices(list(changes), list(changes.values()))
        most = self._chance.choice((0.6, 0.05))
        await _reach(due + timedelta(seconds=self._chance.uniform(-most, most)))
        await change()
        await self._changes.attempt(lambda: self._posting.approve(self._draft))

    async def _publish_until_started(self) -> None:
        while not await self._changes.publish():
            await asyncio.sleep(ASK_SECONDS)
            await self._changes.attempt(lambda: self._posting.approve(self._draft))

    async def _see_through(self, until: asyncio.Event) -> None:
        """Rewrites and retries or reschedules a draft that failed; schedules one that has no time."""
        again = 0
        while again < STARTED_AGAIN:
            states = await self._states()
            if states and states <= ENDED and not states & FAILED and states != {"CANCELED"}:
                return
            if states & (FAILED | WITHOUT_TIME) and states <= ENDED | WITHOUT_TIME:
                await self._start_again(states)
                again += 1
            elif until.is_set():
                return
            await asyncio.sleep(ASK_SECONDS)

    async def _start_again(self, states: set[str]) -> None:
        text = self._changes.text()
        await self._changes.attempt(lambda: self._posting.change_text(self._draft, text))
        await self._changes.attempt(lambda: self._posting.approve(self._draft))
        can_retry, chance = bool(states & FAILED), self._chance.random()
        async with asyncio.TaskGroup() as group:
            if can_retry and chance < 0.6:
                group.create_task(self._retry())
            # Sometimes both at once.
            if not can_retry or chance > 0.4:
                group.create_task(self._reschedule())

    async def _retry(self) -> None:
        posting = self._posting
        await self._changes.attempt(lambda: posting.calling.retry(self._draft, posting.new_request_id, self._chance))

    async def _reschedule(self) -> None:
        due = SystemClock().now() + timedelta(seconds=self._chance.uniform(0, 2))
        request_id = self._posting.new_request_id()
        await self._changes.attempt(lambda: self._posting.schedule_one(self._draft, due, request_id))

    async def _states(self) -> set[str]:
        return await self._posting.insist(lambda: self._posting.tenant.states(self._draft))


async def _reach(moment: datetime) -> None:
    await asyncio.sleep(max((moment - SystemClock().now()).total_seconds(), 0))
