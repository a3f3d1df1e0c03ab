"""Where code of others is called: a handler, a hook or a store may raise anything, and the scheduler goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


class WaitCancelled(Exception):
    """What it waited for was cancelled. Of itself nobody has asked that."""


async def result_of(work: Callable[[], Awaitable[T]]) -> T | Exception:
    """An exception is a result, too. A cancellation of the task that calls is none."""
    try:
        return await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Let through, it would end the worker without a word: for a task group it is no error.
        cancelled = WaitCancelled("what it waited for was cancelled")
        cancelled.__cause__ = error
        return cancelled
    except Exception as error:  # noqa: BLE001 - the one place for it; whoever calls tells `on_error`
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    error: BaseException


def captured(work: Callable[[], T]) -> T | Raised:
    """What work in a thread came to: the one that waits for it raises its error, of whatever kind."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - raised again on the event loop
        return Raised(error=error)


def describe(error: Exception) -> str:
    """What kind of error it is, and what it says of itself, which may raise as well."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as silent:  # noqa: BLE001 - code of others, as in `result_of`
        return f"{type(error).__name__}, which cannot be shown: {type(silent).__name__}"


async def wait(event: asyncio.Event, duration: timedelta | float) -> bool:
    """Until the event is set, but not longer; whether it is. In any case others get their turn."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
