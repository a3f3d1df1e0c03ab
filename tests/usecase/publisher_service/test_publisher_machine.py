"""Everything that may happen to posts, at random and at once on two processes and a real database; promises are kept.

`machine/world.py` does the steps and remembers what callers were promised; `machine/checks.py` looks at every job after
each of them. A long run:

    POSTFLOW_MACHINE_EXAMPLES=2000 make test ARGS="tests/usecase/publisher_service/test_publisher_machine.py"
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.machine.checks import Checks
from tests.usecase.publisher_service.machine.provider import ANSWERS
from tests.usecase.publisher_service.machine.world import ACCOUNTS, DRAFTS, Processes, World

LONG = int(os.environ.get("POSTFLOW_MACHINE_EXAMPLES", "0"))
"""How many examples a long run tries; 0 for the same few in each run."""

Step = Callable[[int], Coroutine[Any, Any, None]]
"""A step, carried out by the process of this number."""

letters = st.sampled_from(list(DRAFTS))
accounts = st.sampled_from(ACCOUNTS)
posts = st.sampled_from([(letter, account) for letter, its_accounts in DRAFTS.items() for account in its_accounts])
scopes = st.sampled_from([Scope.ORGANIZATION, Scope.PROVIDER])
numbers = st.integers(0, 7)
answers = st.sampled_from([*ANSWERS, "accepted", "late accepted", "late out and lost", "late not sent", "claim failed"])
LATE = (
    "late accepted",
    "late out and lost",
    "late lost",
    "late not sent",
    "late rejected",
    "late rejected",
    "claim failed",
)
SECOND = ("out and silent", "late accepted", "late out and lost", "silent", "accepted", "not begun")
spans = st.sampled_from([0, 1, 5, 12, 20, 60, 600]).map(lambda seconds: timedelta(seconds=seconds))


class PublisherMachine(RuleBasedStateMachine):
    def __init__(self, processes: Processes, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.world = World(processes)
        self.checks = Checks()
        self._waiting: Step | None = None
        self._is_waiting = False
        self._await(self.world.begin())

    def _await(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def do(self, step: Step) -> None:
        if self._is_waiting and self._waiting is None:
            self._waiting = step
            return
        steps = [self._waiting, step] if self._waiting else [step]
        self._waiting, self._is_waiting = None, False
        self._await(self._carry_out(steps))

    async def _carry_out(self, steps: list[Step]) -> None:
        async with asyncio.TaskGroup() as group:
            for process, step in enumerate(steps):
                group.create_task(step(process))
        await self.checks.check(self.world)

    def teardown(self) -> None:
        self._await(self.checks.finish(self.world))

    @initialize(chosen=st.lists(posts, min_size=2, max_size=6, unique=True), cap=st.sampled_from([None, None, 1, 2]))
    def begin(self, chosen: list[tuple[str, str]], cap: int | None) -> None:
        if cap is not None:
            self._await(self.world.put_cap(cap))
        for letter, account in chosen:
            self.schedule((letter, account), timedelta(0), timedelta(minutes=20))

    @rule()
    def at_once(self) -> None:
        """The next two steps are carried out at the same time, by two processes."""
        self._is_waiting = True

    # Drafts and Queue

    @rule(letter=letters, approved=st.booleans(), new_text=st.booleans(), left=st.sampled_from([2, 2, 2, 1, 0]))
    def save(self, letter: str, approved: bool, new_text: bool, left: int) -> None:
        self.do(lambda process: self.world.save(process, letter, approved=approved, new_text=new_text, left=left))

    @rule(post=posts, ahead=spans, late=st.sampled_from([2, 20]).map(lambda minutes: timedelta(minutes=minutes)))
    def schedule(self, post: tuple[str, str], ahead: timedelta, late: timedelta) -> None:
        self.do(lambda process: self.world.schedule(process, *post, ahead=ahead, late=late))

    @rule(number=st.integers(0, 1000))
    def repeat_event(self, number: int) -> None:
        self.do(lambda process: self.world.repeat_event(process, number))

    @rule(post=posts)
    def drop_slot(self, post: tuple[str, str]) -> None:
        self.do(lambda process: self.world.drop_slot(process, *post))

    # callers

    @rule(post=posts)
    def cancel(self, post: tuple[str, str]) -> None:
        self.do(lambda process: self.world.cancel(process, *post))

    @rule(letter=letters)
    def withdraw(self, letter: str) -> None:
        self.do(lambda process: self.world.withdraw(process, letter))

    @rule(hold=st.sampled_from(["one", "two"]), account=accounts)
    def hold(self, hold: str, account: str) -> None:
        self.do(lambda process: self.world.hold(process, hold, account))

    @rule(hold=st.sampled_from(["one", "two"]), account=accounts)
    def release(self, hold: str, account: str) -> None:
        self.do(lambda process: self.world.release(process, hold, account))

    @rule(scope=scopes)
    def hold_all(self, scope: Scope) -> None:
        self.do(lambda process: self.world.hold_all(process, scope))

    @rule(scope=scopes)
    def release_all(self, scope: Scope) -> None:
        self.do(lambda process: self.world.release_all(process, scope))

    @rule(post=posts)
    def retry(self, post: tuple[str, str]) -> None:
        self.do(lambda process: self.world.retry(process, *post))

    @rule(post=posts)
    def publish_now(self, post: tuple[str, str]) -> None:
        self.do(lambda process: self.world.publish_now(process, *post))

    @rule(account=accounts)
    def connect(self, account: str) -> None:
        self.do(lambda process: self.world.connect(process, account))

    @rule(post=posts)
    def resolve(self, post: tuple[str, str]) -> None:
        self.do(lambda process: self.world.resolve(process, *post))

    # what Publisher does, and what the provider answers

    @rule(number=numbers, answer=answers)
    def deliver(self, number: int, answer: str) -> None:
        self.do(lambda process: self.world.deliver(process, number, answer))

    @rule(answer=answers)
    def sweep(self, answer: str) -> None:
        self.do(lambda process: self.world.sweep(process, answer))

    @rule(answer=answers)
    def take_turns(self, answer: str) -> None:
        self.do(lambda process: self.world.take_turns(process, answer))

    @rule()
    def answer_late(self) -> None:
        self.do(self.world.answer_late)

    @rule()
    def disown(self) -> None:
        self.do(self.world.disown)

    @rule(looks_fail=st.booleans())
    def break_looks(self, looks_fail: bool) -> None:
        self.world.provider.looks_fail = looks_fail

    @rule(span=spans)
    def let_time_pass(self, span: timedelta) -> None:
        if not self._is_waiting:
            self.world.clock.moment += span

    @rule(answer=answers)
    def recover_later(self, answer: str) -> None:
        """Time passes until leases have ended and looks are due, and a process sweeps."""
        if not self._is_waiting:
            self._sweep_after(16, answer)

    @rule(
        number=numbers,
        first=st.sampled_from(LATE),
        second=st.sampled_from(SECOND),
        after=st.sampled_from([0, 1, 2, 3, 3, 3, 4]),
    )
    def send_twice(self, number: int, first: str, second: str, after: int) -> None:
        """The lease of an attempt ends before its answer, which comes during a later step of its recovery."""
        if self._is_waiting:
            return
        self.deliver(number, first)
        for place, seconds in enumerate((16, 12, 31, 31)):
            if place == after:
                self.answer_late()
            self._sweep_after(seconds, second)

    @rule(post=posts, answer=answers, second=answers)
    def post_now(self, post: tuple[str, str], answer: str, second: str) -> None:
        """A post is approved, gets a time, and its command comes twice."""
        if self._is_waiting:
            return
        self.save(post[0], approved=True, new_text=False, left=2)
        self.schedule(post, timedelta(0), timedelta(minutes=20))
        self.deliver(0, answer)
        self.deliver(1, second)

    def _sweep_after(self, seconds: int, answer: str) -> None:
        self.world.clock.moment += timedelta(seconds=seconds)
        self.do(lambda process: self.world.sweep(process, answer))


async def test_promises_are_kept_in_any_order_of_what_may_happen(database_url: str) -> None:
    loop, processes = asyncio.get_running_loop(), Processes(database_url)

    class Machine(PublisherMachine):
        def __init__(self) -> None:
            super().__init__(processes, loop)

    chosen = settings(
        max_examples=LONG or 60,
        stateful_step_count=50 if LONG else 30,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    try:
        await asyncio.to_thread(run_state_machine_as_test, Machine, settings=chosen)
    finally:
        await processes.close()
