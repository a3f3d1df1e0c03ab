"""Guards around the code of programs: handlers, hooks and stores may raise anything, and the scheduler goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


class WaitCancelled(Exception):
    """A handler, hook or store call awaited something that was cancelled, although nobody cancelled the call itself."""


async def result_of(work: Callable[[], Awaitable[T]]) -> T | Exception:
    """Returns what the work returns or raises. Only a cancellation of the calling task is raised."""
    try:
        return await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # A task group does not count a CancelledError as a failure: raised here, it would end the worker silently.
        cancelled = WaitCancelled("what it waited for was cancelled")
        cancelled.__cause__ = error
        return cancelled
    except Exception as error:  # noqa: BLE001 - the one place for it; callers report the error to `on_error`
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    error: BaseException


def captured(work: Callable[[], T]) -> T | Raised:
    """Returns what work in a thread returns or raises. The task that waits for the thread raises the error again."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - raised again on the event loop
        return Raised(error=error)


def describe(error: Exception) -> str:
    """Returns the type and the text of an error, whose `__str__` may raise as well."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:  # noqa: BLE001 - foreign code, as in `result_of`
        return f"{type(error).__name__}, which cannot be shown: {type(failure).__name__}"


async def wait(event: asyncio.Event, at_most: timedelta | float) -> bool:
    """Waits for the event, but not longer than `at_most`; returns whether it is set. Always yields to the loop once."""
    seconds = at_most.total_seconds() if isinstance(at_most, timedelta) else at_most
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
