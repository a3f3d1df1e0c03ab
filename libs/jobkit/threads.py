"""Threads for handlers that are plain functions."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from jobkit.guards import Raised, captured

T = TypeVar("T")


class Threads:
    """A thread for each concurrent run. They are daemons, so that one that hangs lets its process end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._free: list[_WorkerThread] = []
        self._is_closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Runs the work in a thread and returns its result, even after a cancellation: a thread cannot be cancelled."""
        thread = self._free.pop() if self._free else _WorkerThread(self._name)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T | Raised] = loop.create_future()
        answer.add_done_callback(lambda _: self._put_back(thread))
        thread.work(partial(copy_context().run, work), loop, answer)
        try:
            result = await asyncio.shield(answer)
        except asyncio.CancelledError:
            # A second cancellation, as at the end of the event loop, is raised.
            await asyncio.wait({answer})
            result = answer.result()
        if isinstance(result, Raised):
            raise result.error
        return result

    def close(self) -> None:
        self._is_closed = True
        for thread in self._free:
            thread.end()
        self._free.clear()

    def _put_back(self, thread: "_WorkerThread") -> None:
        if self._is_closed:
            thread.end()
        else:
            self._free.append(thread)


class _WorkerThread:
    """One thread, which does one piece of work after the other."""

    def __init__(self, name: str) -> None:
        self._pieces: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._serve, name=name, daemon=True).start()

    def work(
        self, work: Callable[[], T], loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[T | Raised]"
    ) -> None:
        self._pieces.put(partial(_work, work, loop, answer))

    def end(self) -> None:
        self._pieces.put(None)

    def _serve(self) -> None:
        while (piece := self._pieces.get()) is not None:
            piece()
            del piece  # otherwise the objects of the handler would live as long as the thread


def _work(work: Callable[[], Any], loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Any]") -> None:
    result = captured(work)
    try:
        loop.call_soon_threadsafe(_answer, answer, result)
    except RuntimeError:
        return  # the event loop is closed, and nothing waits for the answer


def _answer(answer: "asyncio.Future[Any]", result: object) -> None:
    if not answer.done():
        answer.set_result(result)
