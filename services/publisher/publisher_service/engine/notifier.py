"""Sends notifications: turns of many receivers at once, each in a task, so that one that hangs delays no other.

Receivers that answer slowly have places of their own, and an organization has only a few at once.
"""

import asyncio
import logging
from collections import Counter

from opentelemetry import metrics

from publisher_service.adapters.postgres.notification_lines import Room
from publisher_service.application.send_notifications import SendNotifications, Turn
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

# What is due sets the event; this is for what was missed.
_PERIOD = 30.0
_QUICK_PLACES = 24
_SLOW_PLACES = 8
_MOST_OF_AN_ORGANIZATION = 4
_meter = metrics.get_meter(__name__)
_failures = from_zero(
    _meter.create_counter(
        "postflow.notifications.failures", description="Turns of receivers whose result could not be recorded"
    )
)


class Notifier:
    def __init__(self, name: str, send: SendNotifications, due: asyncio.Event, *, mail: bool) -> None:
        """Sends e-mails, or else calls webhooks. `due` is set when something may be due."""
        self.name = name
        self._send = send
        self._due = due
        self._mail = mail
        self._quick = _QUICK_PLACES
        self._slow = _SLOW_PLACES
        self._taken: Counter[str] = Counter()

    async def run(self, stop: asyncio.Event) -> None:
        """Sends until `stop`, then waits for what has begun; each attempt has a time limit."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake_when(stop))
            while not stop.is_set():
                self._due.clear()
                if not self._mail or self._send.is_mail_on:
                    await self._begin(group)
                await wait(self._due, _PERIOD)

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._due.set()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Begins as many turns as there is room for."""
        if not (self._quick or self._slow):
            return
        busy = tuple(each for each, turns in self._taken.items() if turns >= _MOST_OF_AN_ORGANIZATION)
        room = Room(mail=self._mail, quick=self._quick, slow=self._slow, most=_MOST_OF_AN_ORGANIZATION, busy=busy)
        try:
            turns = await self._send.take(room)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("%s waits, the database is unreachable: %r", self.name, error)
            return
        for turn in turns:
            self._count(turn, 1)
            group.create_task(self._run(turn))
        if turns:
            self._due.set()

    async def _run(self, turn: Turn) -> None:
        try:
            await self._send(turn)
        except Exception as error:  # noqa: BLE001 - one turn that cannot be recorded must not end the process
            if is_transient(error):
                _log.warning("%s: a turn of %s is not recorded: %r", self.name, turn.organization_id, error)
            else:
                _failures.add(1)
                _log.exception("%s: a turn of %s cannot be recorded", self.name, turn.organization_id)
        finally:
            self._count(turn, -1)
            self._due.set()

    def _count(self, turn: Turn, change: int) -> None:
        self._taken[turn.organization_id] += change
        if not self._taken[turn.organization_id]:
            del self._taken[turn.organization_id]
        if turn.line.slow:
            self._slow -= change
        else:
            self._quick -= change
