"""Repeating commands at once when the stream was wiped, restored from an older copy, or lost its last messages.

An unanswered command would be repeated anyway, but only once its post is late.
"""

import asyncio
import logging
from typing import Protocol

from opentelemetry import metrics

from queue_service.adapters.postgres.dispatch import advance_unanswered
from queue_service.adapters.postgres.sent_commands import delete_all_sent
from queue_service.adapters.postgres.stream import KnownStream, find_stream, save_loss, save_mark, save_recovery
from queue_service.domain.policy import Policy
from queue_service.domain.stream import StreamMark
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.zeros import from_zero
from topology import PUBLISH

_MOST_PAGES = 1000

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_losses = from_zero(
    _meter.create_counter("postflow.queue.stream.losses", description="How often the stream has lost commands")
)


class MarkedStream(Protocol):
    """The stream of commands; see `queue_service.adapters.command_stream`."""

    async def mark(self) -> StreamMark | None: ...

    @property
    def losses(self) -> int: ...


class RecoverCommands:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        commands: MarkedStream,
        policy: Policy,
        wake: asyncio.Event,
    ) -> None:
        """`wake` is set when commands have been made due for a repeat."""
        self._database = database
        self._clock = clock
        self._commands = commands
        self._policy = policy
        self._wake = wake
        self._saved: StreamMark | None = None
        self._handled = 0
        self._counted: int | None = None

    async def __call__(self) -> None:
        mark, noticed = await self._commands.mark(), self._commands.losses
        if mark is None or (mark == self._saved and noticed == self._handled):
            return
        async with self._database.statement() as connection:
            known = await find_stream(connection, PUBLISH.name)
        if known and self._is_loss(known, mark, is_noticed=noticed != self._handled):
            self._counted = await self._recover(known, mark)
        else:
            await self._database.run(lambda tx: save_mark(tx.connection, PUBLISH.name, mark))
            self._counted = known.losses if known else 0
        # Set only now, so that a failed step is repeated.
        self._saved, self._handled = mark, noticed

    def _is_loss(self, known: KnownStream, mark: StreamMark, *, is_noticed: bool) -> bool:
        """Returns whether this process has to recover a loss.

        A process that has just started relies on the stored row, which also shows a recovery that another process did
        not finish. Later, a loss that another process has counted in the meantime is the one that this process noticed.
        """
        if self._counted is None:
            return known.is_recovering or mark.has_lost_since(known.mark)
        return is_noticed and self._counted == known.losses

    async def _recover(self, known: KnownStream, mark: StreamMark) -> int:
        """Recovers a loss, unless another process does. Returns how many losses have been counted."""
        losses, is_first = await self._database.run(lambda tx: self._count(tx, known, mark))
        if is_first:
            if self._counted is not None:
                self._counted = losses  # or a retry of this step would attribute the loss to another process
            slots = await self._advance()
            await self._database.run(lambda tx: save_recovery(tx.connection, PUBLISH.name, losses))
            _losses.add(1)
            _log.warning("the stream %s has lost commands: repeating those of %d slots", PUBLISH.name, slots)
        return losses

    async def _count(self, tx: Transaction, known: KnownStream, mark: StreamMark) -> tuple[int, bool]:
        """Counts the loss. Returns the number of losses, and False if another process has just counted this one."""
        newest = await find_stream(tx.connection, PUBLISH.name, lock=True)
        if newest is None or newest.losses != known.losses:
            return newest.losses if newest else 0, False
        await save_loss(tx.connection, PUBLISH.name, mark)
        await delete_all_sent(tx.connection)
        return known.losses + 1, True

    async def _advance(self) -> int:
        """Makes the commands of all unanswered slots due, in pages, because settlement waits for the locked rows."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
        advanced, size, lead = 0, self._policy.batch, self._policy.lead

        for _ in range(_MOST_PAGES):
            page = await self._database.run(lambda tx: advance_unanswered(tx, now=now, lead=lead, limit=size))
            advanced += page
            self._wake.set()
            if page < size:
                break
        return advanced
