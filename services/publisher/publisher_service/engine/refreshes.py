"""Refreshes credentials that are due. Each provider has a pool of its own, so one that hangs blocks only itself."""

import asyncio
import logging

from opentelemetry import metrics

from publisher_service.adapters.providers.provider import Provider
from publisher_service.application.refresh_due import RefreshDue, Taken
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

# What is due sets the event; this is for one that was missed.
_PERIOD = 30.0
# Requests at once to a provider: nobody waits for a refresh ahead of time.
_AT_ONCE = 16
_meter = metrics.get_meter(__name__)
_failures = from_zero(
    _meter.create_counter(
        "postflow.publish.refresh_failures", description="Refreshes whose result could not be recorded"
    )
)


class Refreshes:
    name = "refreshes"

    def __init__(self, refresh: RefreshDue, due: asyncio.Event) -> None:
        """`due` is set when something is due."""
        self._refresh = refresh
        self._due = due

    async def run(self, stop: asyncio.Event) -> None:
        """Refreshes until `stop`, then waits for what has begun; the provider's time limit ends each."""
        async with asyncio.TaskGroup() as group:
            pools = [_Pool(self._refresh, provider) for provider in self._refresh.providers]
            for pool in pools:
                group.create_task(pool.run(group, stop))
            group.create_task(self._wake_when(stop))
            while not stop.is_set():
                await wait(self._due, _PERIOD)
                self._due.clear()
                for pool in pools:
                    pool.wake.set()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._due.set()


class _Pool:
    def __init__(self, refresh: RefreshDue, provider: Provider) -> None:
        self.wake = asyncio.Event()
        self._refresh = refresh
        self._provider = provider
        self._room = _AT_ONCE

    async def run(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.wake.clear()
            await self._begin(group)
            await wait(self.wake, _PERIOD)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Begins as many refreshes as there is room for."""
        if not self._room:
            return
        try:
            taken, more = await self._refresh.take(self._provider, self._room)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("refreshing waits, the database is unreachable: %r", error)
            return
        for each in taken:
            self._room -= 1
            group.create_task(self._run(each))
        if more and self._room:
            self.wake.set()

    async def _run(self, taken: Taken) -> None:
        try:
            await self._refresh(taken)
        except Exception as error:  # noqa: BLE001 - one that cannot be recorded must not end the process
            account_id = taken.due.account_id
            if is_transient(error):
                _log.warning("the refresh of account %s is not recorded: %r", account_id, error)
            else:
                _failures.add(1)
                _log.exception("the refresh of account %s cannot be recorded", account_id)
        finally:
            self._room += 1
            # Several are taken by one statement.
            if self._room >= _AT_ONCE // 2:
                self.wake.set()
