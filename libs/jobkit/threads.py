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
    """As many as there are runs at once. They are daemons: one that hangs does not keep its process from ending."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._free: list[_Lane] = []
        self._is_closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Returns when the work has ended, and not before: cancelling does not end a thread.

        What the work returns counts, cancelled or not: it has been done.
        """
        lane = self._free.pop() if self._free else _Lane(self._name)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T | Raised] = loop.create_future()
        answer.add_done_callback(lambda _: self._put_back(lane))
        lane.work(partial(copy_context().run, work), loop, answer)
        try:
            result = await asyncio.shield(answer)
        except asyncio.CancelledError:
            # A second cancellation, as at the end of the event loop, is let through.
            await asyncio.wait({answer})
            result = answer.result()
        if isinstance(result, Raised):
            raise result.error
        return result

    def close(self) -> None:
        self._is_closed = True
        for lane in self._free:
            lane.end()
        self._free.clear()

    def _put_back(self, lane: "_Lane") -> None:
        if self._is_closed:
            lane.end()
        else:
            self._free.append(lane)


class _Lane:
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
            del piece  # what the handler has left must not live as long as the thread


def _work(work: Callable[[], Any], loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Any]") -> None:
    result = captured(work)
    try:
        loop.call_soon_threadsafe(_answer, answer, result)
    except RuntimeError:
        return  # the event loop is closed: nobody waits for it any more


def _answer(answer: "asyncio.Future[Any]", result: object) -> None:
    if not answer.done():
        answer.set_result(result)
