"""Two clients work on queues at the same time, at random, on a real database; a model says what must come of it.

Each step is carried out on the service and on the model of `machine/model.py`, and both must agree about every slot,
etag and refusal. Two steps that are carried out at once must come to what one order of them comes to. A long run:

    POSTFLOW_MACHINE_EXAMPLES=5000 make test ARGS="tests/usecase/queue_service/test_queue_machine.py"
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from itertools import islice, permutations
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from civil.weekly import WeeklySlot
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.policy import Policy
from queue_service.domain.resuming import OverduePolicy
from queue_service.domain.slot import SlotState
from tests.usecase.queue_service.machine import adding, arranging, checks, happening, holding
from tests.usecase.queue_service.machine.clients import World, together
from tests.usecase.queue_service.machine.model import ENDED, LEAD, Account, Model, Schedule, drafts
from tests.usecase.queue_service.machine.step import Outcome, Step

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LONG = int(os.environ.get("POSTFLOW_MACHINE_EXAMPLES", "0"))
"""How many examples a long run tries; 0 for the same few in each run."""
ACCOUNTS = ("page", "site")
STATES = [*JobState.__members__.values()]
REPORTED = [state for state in STATES if state in {*ENDED, JobState.READY, JobState.SENDING}]

numbers = st.integers(0, 1000)
accounts = st.sampled_from(ACCOUNTS)
weekly_slots = st.builds(
    lambda day, hour, minute: WeeklySlot(day=day, hour=hour, minute=minute),
    st.integers(0, 6),
    st.sampled_from([1, 9, 10, 23]),
    st.sampled_from([0, 1, 30]),
)
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
caps = st.sampled_from([0, 0, 1, 2])
full_schedules = st.builds(
    lambda slots, zone, cap: Schedule(tuple(sorted(slots)), zone, cap, enabled=True),
    st.frozensets(weekly_slots, min_size=4, max_size=14),
    zones,
    caps,
)
odd_schedules = st.builds(
    lambda slots, zone, cap, enabled: Schedule(tuple(sorted(slots)), zone, cap, enabled),
    st.frozensets(weekly_slots, max_size=3),
    zones,
    caps,
    st.booleans(),
)
spans = st.sampled_from([0, 1, 20, 90, 3600, 5 * 3600, 86_400, 8 * 86_400]).map(
    lambda number: timedelta(seconds=number)
)
policies = st.builds(
    lambda grace, action: LatePolicy(grace=timedelta(minutes=grace), action=action),
    st.sampled_from([1, 10]),
    st.sampled_from(LateAction),
)


class QueueMachine(RuleBasedStateMachine):
    """Draws nothing that depends on the model, because which of two steps comes first is no choice of Hypothesis."""

    def __init__(self, make_queue: "Callable[[Policy], Queue]", loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.model = Model({name: Account(name) for name in ACCOUNTS}, drafts())
        self.world = World(make_queue)
        self.checks = checks.Checks()
        self._waiting: Step | None = None
        self._is_waiting = False
        self._await(self.world.begin(self.model.now, self.model.drafts))

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    # carrying out steps

    def do(self, step: Step) -> None:
        if self._is_waiting and self._waiting is None:
            self._waiting = step
            return
        steps = [self._waiting, step] if self._waiting else [step]
        self._waiting, self._is_waiting = None, False
        for each in [[step] for step in steps] if all(map(self.takes_back, steps)) else [steps]:
            self._await(self._carry_out(each))

    def takes_back(self, step: Step) -> bool:
        """Returns whether the step may have several transactions, between which another such step would show."""
        if isinstance(step, holding.Pause | holding.Resume):
            return True
        return bool(self.dispatched) and not isinstance(step, adding.Add | adding.At | adding.Batch | arranging.Skip)

    async def _carry_out(self, steps: Sequence[Step]) -> None:
        clients = self.world.clients
        outcomes = await together(*(step.run(self.world, each) for step, each in zip(steps, clients, strict=False)))
        after: list[Step] = []
        if len(steps) == 2 and any(isinstance(step, happening.Dispatch) for step in steps):
            # Dispatch passes over accounts that are locked at that moment: it finds them the next time.
            after = [happening.Dispatch()]
            await after[0].run(self.world, clients[0])
        stored = await checks.read(self.world.queue, ACCOUNTS)
        self.model = self._agreeing(steps, outcomes, after, stored)
        await self.checks.check(self.world.queue, self.model, stored)

    def _agreeing(
        self,
        steps: Sequence[Step],
        outcomes: Sequence[Outcome],
        after: Sequence[Step],
        stored: checks.Stored,
    ) -> Model:
        """Returns the model after an order of the steps that has come to what is stored."""
        found = []
        for order in permutations(range(len(steps))):
            model = deepcopy(self.model)
            expected = {place: steps[place].apply(model, stored.ids) for place in order}
            for step in after:
                step.apply(model, stored.ids)
            different = [
                f"{steps[place]}: expected {expected[place]}, answered {outcomes[place]}"
                for place in order
                if expected[place] != outcomes[place]
            ] + checks.differences(model, stored)
            if not different:
                return model
            found.append(f"in the order {[steps[place] for place in order]}:\n  " + "\n  ".join(different))
        raise AssertionError("\n".join(found))

    def teardown(self) -> None:
        if self._waiting:
            self._is_waiting = False
            self.do(happening.RepeatReports(1))

    # choosing

    def etag(self, account: str, number: int) -> str:
        """Mostly the one in force; at times none, or an older one."""
        now = self.model.accounts[account].etag
        return ["", str(now), str(now), str(now), str(now - 1)][number % 5] if now else ""

    def draft(self, number: int) -> str:
        """Picks a draft; not one whose post a person has to look after."""
        attention = {
            slot.draft
            for account in self.model.accounts.values()
            for slot in account.slots
            if JobState.NEEDS_ATTENTION in slot.jobs.values()
        }
        usable = [draft for draft in self.model.drafts if draft not in attention]
        idle = [draft for draft in usable if not self.is_queued(draft)] if number % 4 else usable
        chosen = idle or usable
        return chosen[number % len(chosen)]

    def is_queued(self, draft: str) -> bool:
        return any(slot.draft == draft and slot.is_live for each in self.model.accounts.values() for slot in each.slots)

    def slot(self, account: str, number: int) -> str:
        """Picks the draft of a slot: mostly of a live one."""
        slots = self.model.accounts[account].live if number % 5 else self.model.accounts[account].slots
        return slots[number % len(slots)].draft if slots else self.draft(number)

    @property
    def has_live_slots(self) -> bool:
        return any(account.live for account in self.model.accounts.values())

    @property
    def dispatched(self) -> list[tuple[str, str, str]]:
        """The targets that Publisher has: drafts, accounts and channels."""
        return [
            (slot.draft, account.id, channel)
            for account in self.model.accounts.values()
            for slot in account.live
            if slot.state is SlotState.DISPATCHED
            for channel, job in slot.jobs.items()
            if job not in ENDED
        ]

    def moments(self) -> Iterator[Any]:
        for account in self.model.accounts.values():
            yield from (slot.time for slot in account.live)

    # what clients do

    @initialize(first=full_schedules, second=full_schedules, queued=st.integers(0, 12))
    def begin(self, first: Schedule, second: Schedule, queued: int) -> None:
        for account, schedule in zip(ACCOUNTS, (first, second), strict=True):
            self.do(happening.PutSchedule(account, schedule))
        items = ((draft.id, account) for draft in self.model.drafts.values() for account in draft.targets)
        if queued:
            self.do(adding.Batch(tuple((*item, None) for item in islice(items, queued))))

    @rule()
    def at_once(self) -> None:
        """The next two steps are carried out at the same time."""
        self._is_waiting = True

    @rule(account=accounts, number=numbers, kind=st.integers(0, 3), span=spans)
    def compete(self, account: str, number: int, kind: int, span: timedelta) -> None:
        """Both clients want the same: a time or the next ones, or to change the queue that both have read."""
        if self._is_waiting:
            return
        self.at_once()
        etag, time = str(self.model.accounts[account].etag or ""), self.model.now + span
        for place in range(2):
            draft = self.draft(number + place + 1)
            steps: list[Step] = [
                adding.At(draft, time + place * timedelta(seconds=30), (account,)),
                adding.Add(draft, (account,)),
                arranging.Shuffle(account, number + place + 1, etag),
                adding.Add(draft, (account,), in_front=True),
            ]
            self.do(steps[kind])

    @rule(number=numbers, asked=st.sampled_from([(), (), ("page",), ("site",), ("site", "page")]))
    def add(self, number: int, asked: tuple[str, ...]) -> None:
        draft = self.draft(number)
        self.do(adding.Add(draft, () if number % 3 else asked))

    @rule(number=numbers)
    def share_next(self, number: int) -> None:
        self.do(adding.Add(self.draft(number), in_front=True))

    @rule(items=st.lists(st.tuples(numbers, accounts, st.none() | spans), min_size=1, max_size=6))
    def add_batch(self, items: list[tuple[int, str, timedelta | None]]) -> None:
        chosen = ((self.draft(number), account, span) for number, account, span in items)
        self.do(
            adding.Batch(
                tuple(
                    (draft, account, None if span is None else self.model.now + span) for draft, account, span in chosen
                )
            )
        )

    @rule(number=numbers, span=spans, near=numbers)
    def schedule_at(self, number: int, span: timedelta, near: int) -> None:
        """Schedules a draft soon, or near a slot."""
        times = [self.model.now, *(moment for moment in self.moments() if moment > self.model.now)]
        self.do(adding.At(self.draft(number), times[near % len(times)] + span))

    @rule(account=accounts, order=numbers, etag=numbers, flaw=numbers)
    def reorder(self, account: str, order: int, etag: int, flaw: int) -> None:
        if not self.has_live_slots:
            return
        named = [slot.draft for slot in self.model.accounts[account].scheduled]
        Random(order).shuffle(named)
        if flaw % 7 == 0 and named:
            named[0] = self.draft(flaw)
        elif flaw % 7 == 1:
            named = named[1:]
        self.do(arranging.Reorder(account, tuple(named), self.etag(account, etag)))

    @rule(account=accounts, seed=st.integers(1, 1000), etag=numbers)
    def shuffle(self, account: str, seed: int, etag: int) -> None:
        if not self.has_live_slots:
            return
        self.do(arranging.Shuffle(account, seed, self.etag(account, etag)))

    @rule(account=accounts, number=numbers, close_gap=st.booleans(), etag=numbers)
    def remove(self, account: str, number: int, close_gap: bool, etag: int) -> None:
        if not self.has_live_slots:
            return
        self.do(arranging.Remove(account, self.slot(account, number), close_gap, self.etag(account, etag)))

    @rule(account=accounts, etag=numbers)
    def clear(self, account: str, etag: int) -> None:
        if not self.has_live_slots:
            return
        self.do(arranging.Clear(account, self.etag(account, etag)))

    @rule(account=accounts, number=numbers, to=st.sampled_from(["top", "bottom"]) | numbers | spans, etag=numbers)
    def move(self, account: str, number: int, to: str | int | timedelta, etag: int) -> None:
        if not self.has_live_slots:
            return
        if isinstance(to, int):
            goal: str | datetime = self.slot(account, to)
        else:
            goal = self.model.now + to if isinstance(to, timedelta) else to
        self.do(arranging.Move(account, self.slot(account, number), goal, self.etag(account, etag)))

    @rule(account=accounts, undo=st.booleans())
    def skip(self, account: str, undo: bool) -> None:
        self.do(arranging.Skip(account, undo))

    @rule(account=accounts, etag=numbers)
    def pause(self, account: str, etag: int) -> None:
        self.do(holding.Pause(account, self.etag(account, etag)))

    @rule(account=accounts, overdue=st.sampled_from(OverduePolicy), etag=numbers)
    def resume(self, account: str, overdue: OverduePolicy, etag: int) -> None:
        self.do(holding.Resume(account, overdue, self.etag(account, etag)))

    @rule(account=accounts, policy=policies | st.none(), pace=st.none() | st.integers(1, 9), etag=numbers)
    def update(self, account: str, policy: LatePolicy | None, pace: int | None, etag: int) -> None:
        span = None if pace is None else timedelta(minutes=pace)
        self.do(holding.Update(account, policy, span, self.etag(account, etag)))

    # what happens meanwhile

    @rule()
    def dispatch(self) -> None:
        self.do(happening.Dispatch())

    @rule()
    def reslot(self) -> None:
        self.do(happening.Reslot())

    @rule(number=numbers, state=st.sampled_from(REPORTED))
    def send_next(self, number: int, state: JobState) -> None:
        """Dispatches the next slot when it is due; mostly Publisher reports something soon."""
        if self._is_waiting:
            return
        self.pass_time(timedelta(0), is_due=True)
        self.do(happening.Dispatch())
        if number % 4 and self.dispatched:
            self.report(number, state)

    @rule(account=accounts, number=numbers, is_undone=st.booleans())
    def skip_one(self, account: str, number: int, is_undone: bool) -> None:
        """Has the next draft leave a time empty, which the next one gets if that is taken back."""
        if self._is_waiting:
            return
        self.skip(account, undo=False)
        self.add(number, (account,))
        if is_undone:
            self.skip(account, undo=True)
            self.add(number + 1, (account,))

    @rule(number=numbers, state=st.sampled_from(REPORTED))
    def report(self, number: int, state: JobState) -> None:
        if not self.dispatched:
            return
        self.do(happening.Report(*self.dispatched[number % len(self.dispatched)], state))

    @rule(number=st.integers(1, 3))
    def repeat_reports(self, number: int) -> None:
        self.do(happening.RepeatReports(number))

    @rule(account=accounts, schedule=full_schedules | full_schedules | odd_schedules)
    def put_schedule(self, account: str, schedule: Schedule) -> None:
        self.do(happening.PutSchedule(account, schedule))

    @rule(number=numbers, span=spans, near=numbers)
    def ask_for_time(self, number: int, span: timedelta, near: int) -> None:
        """Has a draft ask for a time soon, or near a slot; often one that has asked before."""
        if isinstance(self._waiting, happening.AskForTime):
            return
        asked = [draft.id for draft in self.model.drafts.values() if draft.asked and self.is_queued(draft.id)]
        draft = asked[number % len(asked)] if asked and number % 2 else self.draft(number)
        times = [self.model.now, *(moment for moment in self.moments() if moment > self.model.now)]
        self.do(happening.AskForTime(draft, times[near % len(times)] + span))

    @rule(account=accounts, number=numbers)
    def connect(self, account: str, number: int) -> None:
        self.do(happening.Connect(account, is_connected=number % 4 > 0))

    @rule(span=spans, is_due=st.booleans())
    def let_time_pass(self, span: timedelta, is_due: bool) -> None:
        if self._is_waiting:
            return
        self.pass_time(span, is_due=is_due)

    def pass_time(self, span: timedelta, *, is_due: bool) -> None:
        """Time passes, in half of the cases until the next slot is due."""
        self.model.now += checks.due(self.moments(), self.model.now) - LEAD if is_due else span
        self.world.set_clock(self.model.now)


async def test_two_clients_come_to_what_a_small_model_comes_to(make_queue: "Callable[[Policy], Queue]") -> None:
    loop = asyncio.get_running_loop()

    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(make_queue, loop)

    chosen = settings(
        max_examples=LONG or 120,
        stateful_step_count=50 if LONG else 40,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[*HealthCheck],
    )
    await asyncio.to_thread(run_state_machine_as_test, Machine, settings=chosen)
