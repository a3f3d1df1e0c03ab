"""Waiting for a condition, in place of a sleep."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, overload

T = TypeVar("T")

POLL_SECONDS = 0.02


@overload
async def eventually(condition: Callable[[], Awaitable[T]], *, within: float = ...) -> T: ...
@overload
async def eventually(condition: Callable[[], T], *, within: float = ...) -> T: ...


async def eventually(condition: Callable[[], T | Awaitable[T]], *, within: float = 20.0) -> T:
    """The first true value of the condition. A condition that raises AssertionError is not met yet.

    The time is for a machine that is busy with other things; what is usual is a fraction of a second. It is shorter
    than the half minute after which things come again that were given back by nobody. At the end of it the last
    AssertionError is raised, or one that shows the last value.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        try:
            found = condition()
            value = await found if isawaitable(found) else found
        except AssertionError:
            if loop.time() > deadline:
                raise
        else:
            if value:
                return value
            if loop.time() > deadline:
                raise AssertionError(f"not within {within} s; at last it was {value!r}")
        await asyncio.sleep(POLL_SECONDS)


async def holds(condition: Callable[[], Awaitable[object]], *, during: float) -> None:
    """The condition is true, and stays so for that many seconds; one that raises AssertionError is not."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + during
    while loop.time() < deadline:
        value = await condition()
        assert value, f"it did not hold: {value!r}"
        await asyncio.sleep(POLL_SECONDS)
