"""Keeps the marks: counts the process's row up, and exchanges what is known with the other processes, in NATS."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.postgres.marks import Beaten, beat, is_forsaken
from publisher_service.adapters.postgres.safe_modes import enter
from publisher_service.application.marks import Marks
from publisher_service.domain.mark import Mark
from publisher_service.domain.safe_mode import SafeMode, SafeModeReason
from publisher_service.wire.marks import marks_from, marks_value
from servicekit.bus.register import Register, Registered
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_BEATEN = declare("publisher.marks.committed")
_meter = metrics.get_meter(__name__)
_rewritten = from_zero(
    _meter.create_counter(
        "postflow.publish.marks_rewritten",
        description="Times that NATS had lost the marks of a database in use, and got them again",
    )
)

_safe_mode = _meter.create_gauge(
    "postflow.publish.safe_mode", description="1 while nothing is sent because the database is an older copy"
)

# Marks of claims that follow one another within this are written together.
_LINGER = 0.02
# How long a claim waits for NATS after the database was lost.
_PATIENCE = 2.0
# A process that has counted within this is at work.
ALIVE = timedelta(seconds=30)
# A silent process is forgotten after this: a copy without its row lacks the later ones of others, too.
_FORGOTTEN = timedelta(minutes=10)


class KeepMarks:
    def __init__(self, *, database: Database, clock: DatabaseClock, marks: Marks, register: Register) -> None:
        self._database = database
        self._clock = clock
        self._marks = marks
        self._register = register
        self._losses = database.losses
        # Whether NATS should have marks: without them on a database in use, it has lost them.
        self._is_in_use = False
        # What the row of this process stands for: others that see it have seen these.
        self._covered: Mapping[str, Mark] = {}

    async def start(self) -> None:
        """Learns the marks and looks at the database, before anything is claimed."""
        found = await self._read()
        await self.beat(is_unmarked=found.value is None)
        await self.exchange()

    async def beat(self, *, is_unmarked: bool = False) -> None:
        """Counts the process's row up, so that the age of a copy is known; an older database enters the safe mode.

        `is_unmarked`: the process starts, and NATS has no marks.
        """
        beaten = await self._database.run(partial(self._beat, is_unmarked=is_unmarked))
        await failpoint(_BEATEN)
        self._is_in_use |= beaten.is_in_use
        _safe_mode.set(int(beaten.is_safe))

    async def exchange(self) -> None:
        """Learns the marks that NATS has, and writes those that are higher here."""
        await asyncio.sleep(_LINGER)
        while True:
            found = await self._read()
            if found.value is None and self._is_in_use:
                _rewritten.add(1)
                _log.warning("NATS does not have the marks of this database: they are written again")
            wanted = self._remembered()
            if wanted == marks_from(found.value) or await self._register.write(
                marks_value(wanted), after=found.revision
            ):
                self._is_in_use = True
                return

    async def catch_up(self) -> None:
        """Reads the marks again if the database was lost meanwhile: it may be another one now.

        If NATS is unreachable, too, what is known here has to do: NATS must not stop posts.
        """
        losses = self._database.losses
        if losses == self._losses:
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._read()
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("the marks cannot be read again: %r", error)
        self._losses = losses

    async def _beat(self, tx: Transaction, *, is_unmarked: bool) -> Beaten:
        now = await self._clock.now(tx)
        if is_unmarked:
            await self._suspect(tx, now)
        known = dict(self._marks.known)
        beaten = await beat(tx, self._marks.process, known, now=now)
        if beaten.mark is None:
            entered = await enter(tx, SafeModeReason.MARK_AHEAD, known, alive=now - ALIVE, now=now)
            tx.after_commit(partial(report, entered))
        else:
            tx.after_commit(partial(self._reached, beaten.mark, known))
        return beaten

    async def _suspect(self, tx: Transaction, now: datetime) -> None:
        """Enters the safe mode on a database that may be a copy: nobody is at work on it, and no mark tells its age."""
        if await is_forsaken(tx, alive=now - ALIVE):
            entered = await enter(tx, SafeModeReason.MARKS_LOST, {}, alive=now - ALIVE, now=now)
            tx.after_commit(partial(report, entered))

    def _reached(self, mark: Mark, covered: Mapping[str, Mark]) -> None:
        self._marks.reach(mark)
        self._covered = covered

    async def _read(self) -> Registered:
        found = await self._register.read()
        self._marks.learn(marks_from(found.value).values())
        return found

    def _remembered(self) -> Mapping[str, Mark]:
        """Returns what NATS should have: marks of processes that ended long ago only if our own does not cover them."""
        own = self._marks.known.get(self._marks.process)
        if own is None:
            return self._marks.known
        self._marks.forget(self._covered, before=own.time - _FORGOTTEN)
        return self._marks.known


def report(entered: SafeMode | None) -> None:
    if entered is not None:
        _log.critical(
            "SAFE MODE: this database is, or may be, older than the posts that went out; nothing is sent, see"
            " docs/operations.md",
            extra={
                "reason": entered.reason,
                "restored_time": str(entered.restored_time),
                "mark_time": str(entered.mark_time),
            },
        )
