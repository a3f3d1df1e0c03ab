"""The steps of an example, each carried out and then checked, alone or beside another one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from civil.windows import SendWindow
from publisher_service.domain.destination import DestinationState
from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.machine.authors import Authors
from tests.usecase.publisher_service.machine.callers import Callers
from tests.usecase.publisher_service.machine.checks import Checks
from tests.usecase.publisher_service.machine.ending import Ending
from tests.usecase.publisher_service.machine.engine import Engine
from tests.usecase.publisher_service.machine.processes import Processes
from tests.usecase.publisher_service.machine.scene import ACCOUNTS, DRAFTS
from tests.usecase.publisher_service.machine.strategies import Named, Post
from tests.usecase.publisher_service.machine.world import World

Step = Callable[[int], Coroutine[Any, Any, None]]
"""A step, carried out by the process of this number."""


class Steps(RuleBasedStateMachine):
    def __init__(self, processes: Processes, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.world = World(processes)
        self.authors, self.callers, self.engine = Authors(self.world), Callers(self.world), Engine(self.world)
        self.checks = Checks(self.world)
        self.lifts = True
        self._waiting: Step | None = None
        self.is_at_once = self._is_within = False
        self._await(self._begin())

    def _await(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _begin(self) -> None:
        await self.world.begin()
        for account in ACCOUNTS:
            await self.callers.connect(0, account)
        for letter in DRAFTS:
            await self.authors.save(0, letter)
        self.world.end_step()

    def do(self, step: Step) -> None:
        if self.is_at_once and self._waiting is None:
            self._waiting = step
            return
        steps = [self._waiting, step] if self._waiting else [step]
        self._waiting, self.is_at_once = None, False
        self._await(self._carry_out(steps))

    async def _carry_out(self, steps: list[Step]) -> None:
        async with asyncio.TaskGroup() as group:
            for process, step in enumerate(steps):
                group.create_task(step(process))
        self.world.end_step()
        if not self._is_within:
            await self.checks.check()

    @contextmanager
    def story(self) -> Iterator[None]:
        """Has several steps checked together: most of the time of an example is that of its checks."""
        self._is_within = True
        yield
        self._is_within = False
        self._await(self.checks.check())

    def teardown(self) -> None:
        ending = Ending(self.world, self.authors, self.callers, self.engine, self.checks)
        self._await(ending(lifts=self.lifts))

    # Drafts, Queue and Schedule

    def save(self, letter: str, approved: bool, new_text: bool, left: int, brand: str | None) -> None:
        self.do(
            lambda process: self.authors.save(
                process, letter, approved=approved, new_text=new_text, left=left, brand=brand
            )
        )

    def schedule(self, post: Post, ahead: timedelta, late: timedelta) -> None:
        self.do(lambda process: self.authors.schedule(process, *post, ahead=ahead, late=late))

    def repeat_event(self, number: int) -> None:
        self.do(lambda process: self.authors.repeat_event(process, number))

    def drop_slot(self, post: Post) -> None:
        self.do(lambda process: self.authors.drop_slot(process, *post))

    def cancel(self, post: Post) -> None:
        self.do(lambda process: self.authors.cancel(process, *post))

    def withdraw(self, letter: str) -> None:
        self.do(lambda process: self.authors.withdraw(process, letter))

    def set_schedule(
        self, account: str, zone: str, enabled: bool, window: SendWindow | None, spacing: timedelta | None
    ) -> None:
        self.do(
            lambda process: self.authors.set_schedule(
                process, account, zone=zone, enabled=enabled, window=window, spacing=spacing
            )
        )

    # callers

    def hold(self, hold: tuple[str, Scope, str]) -> None:
        self.do(lambda process: self.callers.hold(process, *hold))

    def release(self, number: int) -> None:
        self.do(lambda process: self.callers.release(process, number))

    def connect(self, account: str) -> None:
        self.do(lambda process: self.callers.connect(process, account))

    def disconnect(self, account: str) -> None:
        self.do(lambda process: self.callers.disconnect(process, account))

    def disconnect_and_connect(self, account: str) -> None:
        self.disconnect(account)
        self.connect(account)

    def leave_room(self, account: str, room: int) -> None:
        self.do(lambda process: self.callers.leave_room(process, account, room))

    def set_cap(self, account: str, cap: int | None) -> None:
        self.do(lambda process: self.callers.set_cap(process, account, cap))

    def switch(self, post: Post, state: DestinationState) -> None:
        self.do(lambda process: self.callers.switch(process, *post, state))

    def retry(self, post: Post) -> None:
        self.do(lambda process: self.callers.retry(process, *post))

    def publish_now(self, post: Post, over_cap: bool) -> None:
        self.do(lambda process: self.callers.publish_now(process, *post, over_cap=over_cap))

    def resolve(self, post: Post) -> None:
        self.do(lambda process: self.callers.resolve(process, *post))

    # what Publisher does, and what the provider answers

    def deliver(self, number: int, answer: str) -> None:
        self.do(lambda process: self.engine.deliver(process, number, answer))

    def take_in(self, answer: str) -> None:
        self.do(lambda process: self.engine.take_in(process, answer))

    def sweep(self, answer: str) -> None:
        self.do(lambda process: self.engine.sweep(process, answer))

    def take_turns(self, answer: str) -> None:
        self.do(lambda process: self.engine.take_turns(process, answer))

    def begin_request(self, answer: str) -> None:
        self.do(lambda _: self.engine.begin_request(answer))

    def answer_late(self) -> None:
        self.do(self.engine.answer_late)

    def break_looks(self, looks_fail: bool) -> None:
        self.world.provider.looks_fail = looks_fail

    def call(self, step: Named) -> None:
        name, *arguments = step
        getattr(self, name)(*arguments)

    def approve(self, chosen: list[Post], late: timedelta, *, new_text: bool = False) -> None:
        self.do(lambda process: self.authors.approve(process, chosen, new_text=new_text, late=late))

    def sweep_after(self, seconds: int, answer: str) -> None:
        self.world.clock.moment += timedelta(seconds=seconds)
        self.do(lambda process: self.engine.sweep(process, answer))
