"""The rules of channels as Publisher has shown them last, so that a draft is checked without a call."""

import asyncio
from datetime import timedelta
from typing import Final, Protocol

from drafts_service.domain.channel_rules import Rules
from servicekit.clock import Clock
from servicekit.faults import Unavailable

# So soon after a failure nobody waits for Publisher another time.
_PATIENCE: Final = timedelta(seconds=5)


class RuleSource(Protocol):
    async def rules(self) -> Rules:
        """Raises Unavailable if Publisher does not answer soon."""
        ...


class KnownRules:
    def __init__(self, source: RuleSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._rules: Rules | None = None
        self._asked = -float("inf")
        self._asking = asyncio.Lock()

    async def __call__(self) -> Rules | None:
        """Returns None if Publisher has not answered since this process started."""
        if self._rules is None:
            async with self._asking:
                await self._ask_unless_just_asked()
        return self._rules

    async def _ask_unless_just_asked(self) -> None:
        """Asks, unless an earlier caller has got the rules meanwhile, or has asked in vain."""
        if self._rules is None and self._clock.monotonic() >= self._asked + _PATIENCE.total_seconds():
            await self.refresh()

    async def refresh(self) -> None:
        """Asks again: another release of Publisher may have other rules. Without an answer the old ones stay."""
        try:
            self._rules = await self._source.rules()
        except Unavailable:
            self._asked = self._clock.monotonic()
