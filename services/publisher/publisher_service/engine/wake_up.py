"""Wakes the pipeline when there may be something to claim."""

import asyncio

from servicekit.run.loops import wait


class WakeUp:
    """An alarm that exists before the pipeline, so that the parts of the pipeline can wake it without knowing it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        # At the start, lines may have their turn: nobody has looked yet.
        self._has_lines = True

    def wake(self) -> None:
        """Wakes the pipeline: something is due, or a provider has room again."""
        self._event.set()

    def wake_lines(self) -> None:
        """Wakes the pipeline: the line of an account has its turn."""
        self._has_lines = True
        self._event.set()

    @property
    def has_lines(self) -> bool:
        return self._has_lines

    def take_lines(self) -> bool:
        """Returns `has_lines` and resets it."""
        taken, self._has_lines = self._has_lines, False
        return taken

    async def wait(self, seconds: float) -> None:
        """Waits until something wakes the pipeline, for at most `seconds`."""
        await wait(self._event, seconds)

    def clear(self) -> None:
        """Begins a new wait: what woke the pipeline so far is about to be looked at."""
        self._event.clear()
