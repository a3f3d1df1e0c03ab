"""Calls the handler: a coroutine function on the event loop, a plain function in a thread."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from jobkit.config import Config
from jobkit.job import Done, Failed, Job, Outcome
from jobkit.threads import Threads


class Handler:
    """The handler of a configuration, with the checks of its answers."""

    def __init__(self, config: Config) -> None:
        self._is_batch = config.on_batch is not None
        handler = config.on_batch or config.on_document
        assert handler is not None
        self._handler: Callable[[Any], Any] = handler
        self._threads = None if _is_coroutine_function(handler) else Threads(config.name)

    async def handle(self, jobs: Sequence[Job]) -> Sequence[Outcome]:
        if self._is_batch:
            outcomes = list(await self._call(jobs))
        else:
            answers = [await self._call(job) for job in jobs]
            outcomes = [Done() if answer is None else answer for answer in answers]
        if len(outcomes) != len(jobs) or not all(isinstance(outcome, Done | Failed) for outcome in outcomes):
            raise TypeError(f"for {len(jobs)} jobs the handler returned {outcomes!r:.200}")
        return outcomes

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()

    async def _call(self, work: object) -> Any:
        if self._threads is None:
            return await self._handler(work)
        answer = await self._threads.run(partial(self._handler, work))
        # A lambda that returns a coroutine does not look like a coroutine function.
        return await answer if isinstance(answer, Awaitable) else answer


def _is_coroutine_function(handler: Callable[..., object]) -> bool:
    while isinstance(handler, partial):
        handler = handler.func
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
