"""Calls the hooks of a scheduler and reports its errors."""

import asyncio
import logging
from functools import partial

from jobkit.config import Config, Hook
from jobkit.errors import HookFailed, SchedulerError
from jobkit.guards import result_of

_AFTER_GRACE = 1.0
"""Seconds that a hook may still take when the grace of a stop is over."""

_log = logging.getLogger(__name__)


class Hooks:
    """The hooks of a configuration, each within its time limit."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._timeout = None if config.run_timeout is None else config.run_timeout.total_seconds()
        self._scopes: set[asyncio.Timeout] = set()
        self._out_of_time = False

    async def report(self, error: SchedulerError) -> None:
        if self._config.on_error is None:
            _log.warning("%s: %s", self._config.name, error)
            return
        failure = await result_of(partial(self._in_time, partial(self._config.on_error, error)))
        if isinstance(failure, Exception):
            _log.error("%s: on_error failed", self._config.name, exc_info=failure)

    async def on_idle(self) -> None:
        if self._config.on_idle is not None:
            await self._call("on_idle", partial(self._in_time, self._config.on_idle))

    async def on_stop(self) -> None:
        if self._config.on_stop is not None:
            await self._call("on_stop", self._config.on_stop)

    def limit(self) -> None:
        """Limits all hooks from now on: the grace is over, and a hook that hangs must not delay the end."""
        self._out_of_time = True
        for scope in self._scopes:
            scope.reschedule(asyncio.get_running_loop().time() + _AFTER_GRACE)

    async def _call(self, name: str, hook: Hook) -> None:
        failure = await result_of(hook)
        if isinstance(failure, Exception):
            await self.report(HookFailed(name, failure))

    async def _in_time(self, hook: Hook) -> None:
        async with asyncio.timeout(_AFTER_GRACE if self._out_of_time else self._timeout) as scope:
            self._scopes.add(scope)
            try:
                await hook()
            finally:
                self._scopes.discard(scope)
