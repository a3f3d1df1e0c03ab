"""Waits for conditions, instead of sleeping."""

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
    """Returns the first true value of the condition. A condition that raises AssertionError is not met yet.

    Usually takes a fraction of a second; `within` allows for a busy machine. It is shorter than the half minute after
    which unacknowledged messages are redelivered, so that a redelivery does not hide a defect. In the end it raises the
    condition's last AssertionError, or one that shows the last value.
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
                raise AssertionError(f"not within {within} s; the last value was {value!r}")
        await asyncio.sleep(POLL_SECONDS)


async def holds(condition: Callable[[], Awaitable[object]], *, during: float) -> None:
    """Asserts that the condition is true for `during` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + during
    while loop.time() < deadline:
        value = await condition()
        assert value, f"it did not hold: {value!r}"
        await asyncio.sleep(POLL_SECONDS)
