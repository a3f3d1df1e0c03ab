"""Repeats all open commands once Publisher has announced that it runs on an older copy of its database.

What Publisher has forgotten it makes again from the commands, which say which version of each post job Queue knows.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from queue_service.adapters.postgres import redispatch
from queue_service.adapters.postgres.plans import pin_plans
from servicekit.pg.database import Transaction

_log = logging.getLogger(__name__)


class RepeatCommands:
    def __init__(self, on_due: Callable[[], None]) -> None:
        """`on_due` wakes the loops of dispatch once it has been committed that something is due."""
        self._on_due = on_due

    async def __call__(self, tx: Transaction, restores: Sequence[datetime | None], now: datetime) -> None:
        await pin_plans(tx)
        slots = await redispatch.hasten_everywhere(tx, now=now)
        tx.after_commit(partial(self._due, slots))

    def _due(self, slots: int) -> None:
        _log.warning("Publisher was restored: the commands of %d slots are repeated", slots)
        self._on_due()
