"""Finds and wakes stranded lines: posts wait in them, and nothing else would ever wake them.

Settlements and claims leave none behind. A process of another release may, or a person who repairs rows.
"""

import logging

from opentelemetry import metrics

from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.stranded_lines import list_lines, wake_stranded_lines
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_COMMITTED = declare("publisher.wake_stranded.committed")

_meter = metrics.get_meter(__name__)
_stranded = from_zero(
    _meter.create_counter(
        "postflow.publish.lines_stranded", description="Stranded lines of accounts that were found and woken"
    )
)
_BEFORE_ALL = ("", "")


class WakeStrandedLines:
    def __init__(self, *, database: Database, clock: DatabaseClock, page: int = 500) -> None:
        self._database = database
        self._clock = clock
        self._page = page
        self._last: Key = _BEFORE_ALL

    async def __call__(self) -> bool:
        """Looks at a page of lines and returns whether another follows; after the last page it starts over."""
        async with self._database.statement() as connection:
            lines, stranded = await list_lines(connection, self._last, limit=self._page)
        if stranded:
            woken = await self._database.run(lambda tx: self._wake(tx, stranded))
            await failpoint(_COMMITTED)
            _stranded.add(woken)
            if woken:
                _log.warning("woke %d lines in which posts waited and that nothing would have woken", woken)
        more = len(lines) == self._page
        self._last = lines[-1] if more else _BEFORE_ALL
        return more

    async def _wake(self, tx: Transaction, accounts: list[Key]) -> int:
        return await wake_stranded_lines(tx.connection, accounts, now=await self._clock.now(tx.connection))
