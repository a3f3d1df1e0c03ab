"""Stats and dead letters of a process and its database."""

import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from opentelemetry import metrics
from sqlalchemy import text

from servicekit.clock import Clock
from servicekit.faults import InvalidField
from servicekit.messaging.applier import EventApplier, reason_of
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetter, DeadLetters, DeadLetterState
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

MOST_COUNTED = 100_000

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_redriven = _meter.create_counter("postflow.dead_letters.redriven", description="Dead letters applied by a redrive")
_OUTBOX = text(f"""
    select count(*), min(create_time) from (
        select create_time from outbox where stream_sequence is null order by position limit {MOST_COUNTED}
    ) as open
""")  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A figure among the stats of a service."""

    name: str
    value: float
    unit: str = ""


Numbers = Callable[[], Awaitable[Sequence[Number]]]


class Redriver(Protocol):
    """Applies a parked message and closes its letter. Raises the reason for a failure."""

    async def redrive(self, letter: DeadLetter) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    consumer: str
    failing_types: Sequence[str]
    is_failing: bool
    open_letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    service: str
    instance: str
    start_time: datetime
    schema_revision: str
    needed_schema_revision: str
    consumers: Sequence[ConsumerState]
    outbox_backlog: int  # rows
    outbox_age: timedelta | None
    numbers: Sequence[Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    letter: DeadLetter
    failure: str  # empty: it was applied


class Operations:
    """Operations on one process. `redrivers` are those of consumers that do not follow events, by consumer."""

    def __init__(
        self,
        *,
        service: str,
        migrations: str,
        database: Database,
        clock: DatabaseClock,
        system: Clock,
        dead_letters: DeadLetters,
        consumers: Sequence[EventApplier],
        redrivers: Mapping[str, Redriver] | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        self._service = service
        self._migrations = migrations
        self._database = database
        self._clock = clock
        self._dead_letters = dead_letters
        self._appliers = {each.consumer: each for each in consumers}
        self._redrivers: Mapping[str, Redriver] = {**self._appliers, **(redrivers or {})}
        self._numbers = numbers
        self._start_time = system.now()
        for consumer in self._redrivers:
            from_zero(_redriven, {"consumer": consumer})

    async def stats(self, organization_id: str = "") -> Stats:
        open_letters = await self._dead_letters.count_open(organization_id)
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            backlog, oldest = (await connection.execute(_OUTBOX)).one()
        return Stats(
            service=self._service,
            instance=f"{socket.gethostname()}:{os.getpid()}",
            start_time=self._start_time,
            schema_revision=await migrations.revision(self._database),
            needed_schema_revision=migrations.newest(self._migrations),
            consumers=[
                self._state_of(consumer, open_letters.get(consumer, 0))
                for consumer in sorted(self._redrivers.keys() | open_letters.keys())
            ],
            outbox_backlog=backlog,
            outbox_age=now - oldest if oldest else None,
            numbers=await self._numbers() if self._numbers else (),
        )

    def _state_of(self, consumer: str, open_letters: int) -> ConsumerState:
        applier = self._appliers.get(consumer)
        return ConsumerState(
            consumer=consumer,
            failing_types=applier.failing_types if applier else (),
            is_failing=applier.is_failing if applier else False,
            open_letters=open_letters,
        )

    async def list(
        self,
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        organization_id: str,
        consumer: str,
        states: Sequence[DeadLetterState],
        payload_bytes: int,
    ) -> Sequence[DeadLetter]:
        return await self._dead_letters.list(
            limit=limit,
            after=after,
            organization_id=organization_id,
            consumer=consumer,
            states=states or tuple(DeadLetterState),
            payload_bytes=payload_bytes,
        )

    async def redrive(self, ids: Sequence[str], organization_id: str) -> Sequence[Redriven]:
        """Redrives letters one by one, oldest first. An unreachable dependency ends it; earlier ones stay applied."""
        letters = await self._dead_letters.get(ids)
        wanted = (each for each in letters if organization_id in {"", each.organization_id})
        return [await self._redrive(each) for each in wanted if each.state is not DeadLetterState.REDRIVEN]

    def check_consumer(self, consumer: str) -> None:
        if consumer not in self._redrivers:
            known = ", ".join(sorted(self._redrivers))
            raise InvalidField("consumer", f"is none of this process's consumers: {known}", reason="UNKNOWN_CONSUMER")

    async def archive(self, ids: Sequence[str], organization_id: str) -> Sequence[str]:
        archived = await self._dead_letters.archive(ids, organization_id)
        _log.info("archived %d dead letters", len(archived))
        return archived

    async def _redrive(self, letter: DeadLetter) -> Redriven:
        redriver = self._redrivers.get(letter.consumer)
        if redriver is None:
            return Redriven(letter=letter, failure="UNKNOWN_CONSUMER: this process has no such consumer")
        try:
            await redriver.redrive(letter)
        except Exception as error:
            if is_transient(error):
                raise
            _log.warning("dead letter %s of %s failed again", letter.id, letter.consumer, exc_info=error)
            await self._dead_letters.failed_again(letter.id, reason_of(error))
            return Redriven(letter=letter, failure=reason_of(error))
        _redriven.add(1, {"consumer": letter.consumer})
        _log.info("dead letter %s of %s was redriven", letter.id, letter.consumer)
        return Redriven(letter=letter, failure="")
