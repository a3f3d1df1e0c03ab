import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from servicekit.faults import NotFound, Unavailable
from servicekit.run import Loop, is_transient
from servicekit.run.loops import backoff

NEVER = timedelta(hours=1)
AT_ONCE = timedelta(0)

Step = Callable[[], Awaitable[bool | None]]


class Steps:
    """A step that returns or raises one given result per call, and sets `stop` after the last."""

    def __init__(self, *results: bool | Exception) -> None:
        self.stop = asyncio.Event()
        self._results = list(results)

    async def __call__(self) -> bool:
        result = self._results.pop(0)
        if not self._results:
            self.stop.set()
        if isinstance(result, Exception):
            raise result
        return result

    @property
    def left(self) -> int:
        return len(self._results)


async def run(step: Step, stop: asyncio.Event, period: timedelta = NEVER, wake: asyncio.Event | None = None) -> None:
    async with asyncio.timeout(10):
        await Loop("test", step, period, wake).run(stop)


async def test_a_step_that_has_more_runs_again_at_once() -> None:
    steps = Steps(True, True, True, False)
    await run(steps, steps.stop)
    assert steps.left == 0


async def test_a_step_that_has_no_more_runs_again_after_the_period() -> None:
    steps = Steps(False, False, False)
    await run(steps, steps.stop, AT_ONCE)
    assert steps.left == 0


async def test_a_wake_ends_the_waiting() -> None:
    stop, wake, ran = asyncio.Event(), asyncio.Event(), asyncio.Queue[None]()

    async def step() -> None:
        ran.put_nowait(None)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(Loop("test", step, NEVER, wake).run(stop))
        for _ in range(3):
            await ran.get()
            wake.set()
        await ran.get()
        stop.set()


async def test_one_wake_is_one_run() -> None:
    stop, wake, ran = asyncio.Event(), asyncio.Event(), asyncio.Queue[None]()

    async def step() -> None:
        ran.put_nowait(None)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(Loop("test", step, NEVER, wake).run(stop))
        await ran.get()
        wake.set()
        await ran.get()
        for _ in range(20):
            await asyncio.sleep(0)
        assert ran.empty()
        stop.set()


async def test_a_wake_during_a_step_is_not_lost() -> None:
    stop, wake = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def step() -> None:
        runs.append(len(runs))
        wake.set()
        if len(runs) == 3:
            stop.set()

    await run(step, stop, NEVER, wake)
    assert runs == [0, 1, 2]


async def test_a_stop_ends_the_waiting_and_lets_the_step_finish() -> None:
    stop, began, finish, finished = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def step() -> None:
        began.set()
        await finish.wait()
        finished.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(Loop("test", step, NEVER).run(stop))
        await began.wait()
        stop.set()
        finish.set()
    assert finished.is_set()


async def test_an_unreachable_dependency_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    steps = Steps(ConnectionRefusedError("no"), Unavailable("AWAY", "no"), TimeoutError(), False)
    await run(steps, steps.stop)
    assert steps.left == 0
    assert caplog.text.count("retrying in") == 3


async def test_any_other_error_ends_the_loop() -> None:
    steps = Steps(True, KeyError("bug"), True)
    with pytest.raises(ExceptionGroup) as caught:
        await run(steps, steps.stop)
    assert isinstance(caught.value.exceptions[0], KeyError)
    assert steps.left == 1


async def test_a_loop_that_is_stopped_before_it_begins_does_nothing() -> None:
    steps = Steps(True)
    steps.stop.set()
    await run(steps, steps.stop)
    assert steps.left == 1


def test_the_back_off_grows_to_a_limit() -> None:
    waits = [backoff(failures) for failures in (0, 3, 6, 40, 4000)]
    assert waits[0] <= 0.1
    assert waits[1] <= 0.8
    assert 5 <= waits[-1] <= 10


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OSError("Multiple exceptions: [Errno 111], [Errno 111]"), True),
        (Unavailable("X", "x"), True),
        (ExceptionGroup("x", [TimeoutError(), ConnectionError()]), True),
        (ExceptionGroup("x", [TimeoutError(), KeyError()]), False),
        (KeyError(), False),
        (NotFound("X", "x"), False),
        (RuntimeError("connection"), False),
    ],
    ids=repr,
)
def test_only_transient_errors_are_waited_for(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient
