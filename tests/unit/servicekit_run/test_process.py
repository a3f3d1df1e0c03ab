"""The life of a process: its order, its bounded waits, and its failures."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from servicekit.run import Process, SettingsError, serve
from servicekit.run.addresses import Misconfigured, Place

Story = list[str]


class FakeServer:
    def __init__(self, story: Story) -> None:
        self._story = story

    async def start(self) -> None:
        self._story.append("server starts")

    async def set_serving(self, *, serving: bool) -> None:
        self._story.append("serving" if serving else "not serving")

    async def stop(self, grace: float) -> None:
        self._story.append("server stops")


class Part:
    """Runs until it is stopped, then calls `finish`."""

    def __init__(self, name: str, story: Story, finish: Callable[[], Awaitable[None]] | None = None) -> None:
        self.name = name
        self._story = story
        self._finish = finish

    async def run(self, stop: asyncio.Event) -> None:
        self._story.append(f"{self.name} runs")
        await stop.wait()
        if self._finish:
            await self._finish()
        self._story.append(f"{self.name} ends")


class Failing:
    name = "failing"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def run(self, _stop: asyncio.Event) -> None:
        if self._error:
            raise self._error


def step(story: Story, what: str, *errors: Exception) -> Callable[[], Coroutine[Any, Any, None]]:
    """Fails with each of the errors in turn, then succeeds."""
    left = list(errors)

    async def run() -> None:
        story.append(what)
        if left:
            raise left.pop(0)

    return run


async def hang() -> None:
    await asyncio.Event().wait()


async def life(process: Process, stop: asyncio.Event | None = None) -> None:
    async with asyncio.timeout(10):
        await serve(process, stop or asyncio.Event())


async def live(process: Process, stop: asyncio.Event | None = None) -> None:
    """Runs until the process is serving, then stops it."""
    stop, ready = stop or asyncio.Event(), asyncio.Event()

    async def stop_when_ready() -> None:
        await ready.wait()
        stop.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        watcher = group.create_task(stop_when_ready())
        try:
            await serve(process, stop, ready)
        finally:
            watcher.cancel()


def process(story: Story, **parts: Any) -> Process:
    whole: dict[str, Any] = {"name": "test", "server": FakeServer(story), "grace": timedelta(seconds=5)}
    return Process(**(whole | parts))


async def test_a_life_has_its_order() -> None:
    story: Story = []
    await live(
        process(
            story,
            starters={"schema": step(story, "check schema"), "streams": step(story, "make streams")},
            consumers=[Part("consumer", story)],
            loops=[Part("loop", story)],
            closers={"relay": step(story, "flush relay"), "database": step(story, "dispose engine")},
        )
    )
    assert story == [
        "server starts",
        "check schema",
        "make streams",
        "serving",
        "consumer runs",
        "loop runs",
        "not serving",
        "consumer ends",
        "loop ends",
        "server stops",
        "flush relay",
        "dispose engine",
    ]


async def test_a_stop_while_the_loops_start_ends_all_of_them() -> None:
    story: Story = []
    await live(process(story, loops=[Part("first", story), Part("last", story)]))
    assert sorted(story[story.index("first runs") :]) == [
        "first ends", "first runs", "last ends", "last runs", "not serving", "server stops",
    ]  # fmt: skip


async def test_work_in_flight_is_finished() -> None:
    story: Story = []

    async def finish() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        story.append("the last message")

    await live(process(story, consumers=[Part("consumer", story, finish)]))
    assert "the last message" in story


async def test_an_unreachable_dependency_delays_the_start(caplog: pytest.LogCaptureFixture) -> None:
    story: Story = []
    await live(process(story, starters={"schema": step(story, "try", ConnectionRefusedError("no"), TimeoutError())}))
    assert story[:4] == ["server starts", "try", "try", "try"]
    assert "serving" in story
    assert caplog.text.count("starting schema") == 2


async def test_a_stop_while_waiting_for_a_dependency_ends_the_process() -> None:
    story: Story = []
    stop = asyncio.Event()

    async def away() -> None:
        stop.set()
        raise ConnectionRefusedError

    await live(process(story, starters={"schema": away}, closers={"database": step(story, "dispose")}), stop)
    assert story == ["server starts", "server stops", "dispose"]


async def test_a_stop_while_a_starter_hangs_ends_the_process() -> None:
    story: Story = []
    stop = asyncio.Event()

    async def hanging() -> None:
        stop.set()
        await hang()

    await live(process(story, starters={"schema": hanging}), stop)
    assert story == ["server starts", "server stops"]


async def test_a_starter_that_fails_ends_the_process_with_its_error() -> None:
    story: Story = []
    with pytest.raises(KeyError, match="old schema"):
        await life(
            process(
                story,
                starters={"schema": step(story, "check", KeyError("old schema"))},
                closers={"database": step(story, "dispose")},
            )
        )
    assert story == ["server starts", "check", "server stops", "dispose"]


async def test_a_failing_part_ends_the_process_when_others_have_finished() -> None:
    story: Story = []

    async def finish() -> None:
        story.append("the last message")

    with pytest.raises(KeyError, match="bug"):
        await life(process(story, consumers=[Part("consumer", story, finish)], loops=[Failing(KeyError("bug"))]))
    assert story[-4:] == ["not serving", "the last message", "consumer ends", "server stops"]


async def test_a_part_that_awaits_a_cancelled_task_is_a_failure() -> None:
    class Deserted:
        name = "deserted"

        async def run(self, stop: asyncio.Event) -> None:
            waited_for = asyncio.get_running_loop().create_future()
            waited_for.cancel()
            await waited_for

    with pytest.raises(RuntimeError, match="deserted ended by itself"):
        await life(process([], loops=[Deserted()]))


async def test_a_part_that_ends_by_itself_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match="failing ended by itself"):
        await life(process([], consumers=[Failing(None)]))


async def test_a_part_that_does_not_finish_in_time_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    story: Story = []
    slow = Part("slow", story, hang)
    await live(process(story, consumers=[slow], loops=[Part("loop", story)], grace=timedelta(milliseconds=50)))
    assert "slow did not finish in time" in caplog.text
    assert story[-2:] == ["loop ends", "server stops"]


async def test_a_closer_that_fails_does_not_keep_the_others_from_closing() -> None:
    story: Story = []
    closers = {"one": step(story, "one", KeyError("bug")), "two": step(story, "two")}
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(KeyError, match="bug"):
        await life(process(story, closers=closers), stop)
    assert story[-2:] == ["one", "two"]


async def test_an_unreachable_dependency_at_the_end_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    story: Story = []
    await live(process(story, closers={"nats": step(story, "drain", ConnectionResetError("gone"))}))
    assert "closing nats" in caplog.text


async def test_a_cancelled_process_is_closed_too() -> None:
    story: Story = []
    ready = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(
            serve(
                process(story, loops=[Part("loop", story)], closers={"database": step(story, "dispose")}),
                asyncio.Event(),
                ready,
            )
        )
        await ready.wait()
        task.cancel()
    assert story[-2:] == ["server stops", "dispose"]


async def test_a_start_that_waits_logs_each_reason_once(caplog: pytest.LogCaptureFixture) -> None:
    away = [OSError("no route"), OSError("no route"), OSError("refused"), OSError("refused")]
    whole = process([], starters={"database": step([], "connect", *away)})
    stop, ready = asyncio.Event(), asyncio.Event()
    place = Place(variable="POSTFLOW_TEST_DATABASE_URL", address="postgresql://u@host/db")
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(serve(whole, stop, ready, places={"database_url": place}))
        await ready.wait()
        stop.set()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "starting database: waiting for postgresql://u@host/db (POSTFLOW_TEST_DATABASE_URL): no route",
        "starting database: waiting for postgresql://u@host/db (POSTFLOW_TEST_DATABASE_URL): refused",
    ]


async def test_a_misconfiguration_ends_the_start_and_names_the_variable() -> None:
    whole = process([], starters={"nats": step([], "connect", Misconfigured("nats_url", "no JetStream"))})
    place = Place(variable="POSTFLOW_NATS_URL", address="nats://host")
    with pytest.raises(SettingsError, match=r"^POSTFLOW_NATS_URL: nats://host: no JetStream$"):
        await serve(whole, asyncio.Event(), places={"nats_url": place})
