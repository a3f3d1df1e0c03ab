"""Everything that may happen to posts, at random and at once on two processes and a real database; promises are kept.

`machine/authors.py`, `callers.py` and `engine.py` do the steps; `promised.py` remembers what was promised, and what an
attempt breaks of it; `checks.py` looks at every job after each step. A long run:

    POSTFLOW_MACHINE_EXAMPLES=2000 make test ARGS="tests/usecase/publisher_service/test_publisher_machine.py"
"""

import asyncio
import os
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from civil.windows import SendWindow
from publisher_service.domain.destination import DestinationState
from tests.usecase.publisher_service.machine.processes import Processes
from tests.usecase.publisher_service.machine.scene import POSTS
from tests.usecase.publisher_service.machine.steps import Steps
from tests.usecase.publisher_service.machine.strategies import (
    ADDRESSED,
    Named,
    Post,
    Stopped,
    addressed,
    answers,
    begun_answers,
    caps,
    doubtful_answers,
    followed,
    late_answers,
    moves,
    patience,
    posts,
    rooms,
    second_answers,
    spacings,
    spans,
    stopped_posts,
    stops,
    stops_of,
    unfinished_answers,
    windows,
    zones,
)

LONG = int(os.environ.get("POSTFLOW_MACHINE_EXAMPLES", "0"))
"""How many examples a long run tries; 0 for the same few in each run."""


class PublisherMachine(Steps):
    @initialize(
        chosen=st.lists(posts, min_size=4, max_size=9, unique=True),
        late=patience,
        cap=caps,
        zone=zones,
        window=windows,
        spacing=spacings,
        lifts=st.booleans(),
    )
    def begin(
        self,
        chosen: list[Post],
        late: timedelta,
        cap: int | None,
        zone: str,
        window: SendWindow | None,
        spacing: timedelta | None,
        lifts: bool,
    ) -> None:
        """Posts are due; one account has a cap, another a schedule."""
        self.lifts = lifts
        self.set_cap("lookup", cap)
        self.set_schedule("keyed", zone, True, window, spacing)
        self.approve(chosen, late)

    @rule(pair=st.one_of(st.tuples(stops, moves), st.tuples(moves, stops), st.tuples(moves, moves)))
    def at_once(self, pair: tuple[Named, Named]) -> None:
        """Two steps are carried out at the same time, by two processes."""
        self.is_at_once = True
        for each in pair:
            self.call(each)

    @rule(step=stops)
    def stop(self, step: Named) -> None:
        self.call(step)

    @rule(step=moves)
    def move(self, step: Named) -> None:
        self.call(step)

    @rule(span=spans)
    def let_time_pass(self, span: timedelta) -> None:
        self.world.clock.moment += span

    # stories, which lead further in a few steps than chance does

    @rule(answer=answers)
    def recover_later(self, answer: str) -> None:
        """Time passes until leases have ended and looks are due, and a process sweeps."""
        self.sweep_after(16, answer)

    @rule(
        post=posts,
        first=late_answers,
        second=second_answers,
        after=st.sampled_from([0, 1, 2, 3, 3, 3, 4]),
    )
    def send_twice(self, post: Post, first: str, second: str, after: int) -> None:
        """The lease of an attempt ends before its answer, which comes during a later step of its recovery."""
        with self.story():
            self.approve([post], timedelta(minutes=20))
            self.deliver(0, first)
            for place, seconds in enumerate((16, 12, 31, 31)):
                if place == after:
                    self.answer_late()
                self.sweep_after(seconds, second)

    @rule(post=posts, answers=st.lists(answers, min_size=2, max_size=4), seconds=st.sampled_from([2, 16, 40]))
    def insist(self, post: Post, answers: list[str], seconds: int) -> None:
        """A post is sent again and again."""
        with self.story():
            self.approve([post], timedelta(minutes=60))
            self.deliver(0, answers[0])
            for answer in answers[1:]:
                self.sweep_after(seconds, answer)
                self.take_turns(answer)

    @rule(post=posts, answer=answers, second=answers, late=patience)
    def post_now(self, post: Post, answer: str, second: str, late: timedelta) -> None:
        """A post is approved, gets a time, and its command comes twice."""
        with self.story():
            self.approve([post], late)
            self.deliver(0, answer)
            self.deliver(1, second)

    @rule(post=addressed, times=st.integers(1, 5))
    def refuse(self, post: Post, times: int) -> None:
        """The provider refuses a post so many times in a row, each in a run of its own."""
        with self.story():
            self.approve([post], timedelta(minutes=20))
            self.deliver(0, "rejected")
            for _ in range(1, times):
                self.retry(post)
                self.sweep("rejected")

    @rule(post=followed, answer=answers, second=second_answers, is_at_once=st.booleans())
    def comment(self, post: Post, answer: str, second: str, is_at_once: bool) -> None:
        """The comment of a post that is out is sent again and again, the first time by one process or two."""
        with self.story():
            self._prepare([post], 2)
            self.deliver(0, "accepted")
            self.is_at_once = is_at_once
            self.sweep_after(1, answer)
            self.sweep_after(1, answer)
            self.answer_late()
            for seconds in (16, 12):
                self.sweep_after(seconds, second)

    @rule(
        stopped=stopped_posts,
        begun=begun_answers,
        is_over=st.booleans(),
        is_at_once=st.booleans(),
        answer=answers,
        room=rooms,
    )
    def stop_before_request(
        self, stopped: Stopped, begun: str, is_over: bool, is_at_once: bool, answer: str, room: int
    ) -> None:
        """Something stops a post whose request has not begun; it may be over before that is recorded."""
        with self.story():
            self._prepare([stopped[0]], room)
            self.take_in("slow")
            self.is_at_once = is_at_once
            self.call(stopped[1])
            self.begin_request(begun)
            if is_over:
                self.release(0)
                self.take_turns(answer)
                self.answer_late()
            self._go_on(answer)

    @rule(
        stopped=stopped_posts,
        first=doubtful_answers,
        is_looked_up=st.booleans(),
        is_at_once=st.booleans(),
        answer=answers,
        room=rooms,
    )
    def stop_in_doubt(
        self, stopped: Stopped, first: str, is_looked_up: bool, is_at_once: bool, answer: str, room: int
    ) -> None:
        """Something stops a post that may be out, or waits to be sent again."""
        with self.story():
            self._prepare([stopped[0]], room)
            self.deliver(0, first)
            if is_looked_up:
                self.sweep_after(16, "not begun")
                self.sweep_after(12, "not begun")
            self.is_at_once = is_at_once
            self.call(stopped[1])
            self.answer_late()
            self._go_on(answer)

    @rule(stopped=stopped_posts, first=unfinished_answers, is_at_once=st.booleans(), answer=answers, room=rooms)
    def stop_in_line(self, stopped: Stopped, first: str, is_at_once: bool, answer: str, room: int) -> None:
        """Something stops a post that waits behind others of its account."""
        post, stop = stopped
        with self.story():
            self._prepare([each for each in POSTS if each[1] == post[1] and each != post], room)
            self.take_in(first)
            self.world.clock.moment += timedelta(seconds=1)
            self.approve([post], timedelta(minutes=90))
            self.take_in("accepted")
            self.is_at_once = is_at_once
            self.call(stop)
            self.sweep("accepted")
            self.begin_request("accepted")
            self.answer_late()
            for _ in POSTS:
                self.take_turns("accepted")
            self._go_on(answer)

    @rule(answer=answers)
    def wait_for_limits(self, answer: str) -> None:
        """A night passes, and lines have their turns."""
        with self.story():
            self.world.clock.moment += timedelta(hours=10)
            self.take_turns(answer)
            self.take_turns(answer)

    def _prepare(self, chosen: list[Post], room: int) -> None:
        """Posts are due that nothing stops, as many as the cap of their account leaves room for."""
        for _ in range(len(self.world.promised.held)):
            self.release(0)
        account = chosen[0][1]
        self.connect(account)
        schedule = self.world.promised.schedules[account]
        if schedule.window or schedule.min_spacing or not schedule.enabled:
            self.set_schedule(account, schedule.time_zone, True, None, None)
        for post in chosen:
            if post in ADDRESSED:
                self.switch(post, DestinationState.ACTIVE)
        # Until its line has had a turn, no command passes it.
        self.take_turns("accepted")
        self.leave_room(account, room)
        # No text that was withdrawn before.
        self.approve(chosen, timedelta(minutes=90), new_text=True)

    def _go_on(self, answer: str) -> None:
        for _ in range(2):
            self.sweep_after(16, answer)
            self.take_turns(answer)


async def test_promises_are_kept_no_matter_what_stops_a_post_half_way(database_url: str) -> None:
    loop, processes = asyncio.get_running_loop(), Processes(database_url)

    def tell(stopped: Stopped) -> None:
        machine = PublisherMachine(processes, loop)
        machine.stop_in_line(stopped, "slow", False, "accepted", 10)
        for is_looked_up in (False, True):
            machine.stop_in_doubt(stopped, "lost", is_looked_up, False, "accepted", 2)
        # At last, so that no later release lets go what has missed its own.
        for is_over in (False, True):
            machine.stop_before_request(stopped, "late accepted", is_over, False, "accepted", 2)
        machine.teardown()

    try:
        post = ("f", "lookup")
        for stop in stops_of(post):
            await asyncio.to_thread(tell, (post, stop))
    finally:
        await processes.close()


async def test_promises_are_kept_in_any_order_of_what_may_happen(database_url: str) -> None:
    loop, processes = asyncio.get_running_loop(), Processes(database_url)

    class Machine(PublisherMachine):
        def __init__(self) -> None:
            super().__init__(processes, loop)

    chosen = settings(
        max_examples=LONG or 12,
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
