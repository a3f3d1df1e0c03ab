"""A nemesis, which breaks one thing after another and repairs each after a moment."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from devstack.stack import Stack
from testkit.stack.proxy import Proxy

PROVIDER_FAULTS: Sequence[Mapping[str, object]] = (
    {"fault": "effect_then_reset"},
    {"fault": "reset_before_effect"},
    {"fault": "effect_then_hang"},
    {"fault": "hang_without_effect"},
    {"fault": "status", "status": 503, "effect": True},
    {"fault": "status", "status": 500},
    {"fault": "status", "status": 429, "retry_after": 1},
    {"fault": "garbage", "effect": True},
    {"fault": "slow", "seconds": 1.0},
    {"fault": "late_effect", "seconds": 0.5},
    {"fault": "status", "status": 503, "operation": "lookup"},
    {"fault": "status", "status": 503, "operation": "status"},
    {"fault": "reset_before_effect", "operation": "container"},
    {"fault": "media", "operation": "container", "seconds": 1.0, "error": "bad media"},
)
REFUSED = "[refused]"
"""Texts with this mark are refused by the provider for good."""
REFUSALS: Mapping[str, object] = {"fault": "status", "status": 422, "text": REFUSED}
UNEVEN = (0.9, 0.3, 0.15, 0.15, 0.0)
MOST_SKEW = 60.0


class Nemesis:
    def __init__(self, stack: Stack, proxies: Sequence[Proxy], chance: random.Random) -> None:
        """Takes `proxies` that stand between processes and their databases."""
        self._stack = stack
        self._proxies = proxies
        self._chance = chance
        self.faults: Counter[str] = Counter()
        self.ended_by_themselves: list[str] = []

    async def rage(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        faults: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self.kill_a_service),
            (4, self.stop_a_service),
            (4, self.freeze_a_service),
            (4, self.skew_a_service),
            (3, self.step_the_clock_of_queue_back),
            (8, self.turn_a_database_uneven_or_even),
            (2, self.freeze_a_database),
            (2, self.restart_nats),
            (2, self.kill_nats),
            (1, self.wipe_nats),
            (1, self.restart_postgres),
            (2, self.kill_postgres),
            (8, self.upset_the_provider),
        ]
        weights, choices = [weight for weight, _ in faults], [fault for _, fault in faults]
        end = loop.time() + seconds
        while loop.time() < end:
            (fault,) = self._chance.choices(choices, weights)
            self.faults[fault.__name__] += 1
            await fault()
            self.ended_by_themselves += [name for name in self._stack.processes if not self._stack.running(name)]
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))
        await self.relent()

    async def relent(self) -> None:
        for proxy in self._proxies:
            proxy.delays = ()
            proxy.thaw()
        await self._stack.sandbox.faults(REFUSALS)

    async def kill_a_service(self) -> None:
        name = self._any_service()
        await self._stack.kill(name)
        await self._moment(1.0)
        await self._stack.start(name)

    async def stop_a_service(self) -> None:
        await self._stack.restart(self._any_service())

    async def freeze_a_service(self) -> None:
        """Stops a process for up to 4.5 s, sometimes longer than Publisher's leases last."""
        pid = self._stack.pid(self._any_service())
        os.kill(pid, signal.SIGSTOP)
        try:
            await self._moment(4.5)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def skew_a_service(self) -> None:
        offset = round(self._chance.uniform(-MOST_SKEW, MOST_SKEW), 3)
        await self._stack.restart(self._any_service(), {"POSTFLOW_CLOCK_OFFSET": str(offset)})

    async def step_the_clock_of_queue_back(self) -> None:
        """Sets Queue's clock ahead for some seconds and back: new slots then have older ids than existing ones."""
        await self._stack.restart("queue", {"POSTFLOW_CLOCK_OFFSET": str(MOST_SKEW)})
        await self._moment(4.0)
        await self._stack.restart("queue", {"POSTFLOW_CLOCK_OFFSET": "0"})

    async def turn_a_database_uneven_or_even(self) -> None:
        """Toggles delays of a database; they last while other things break, about half of the time."""
        proxy = self._chance.choice(self._proxies)
        proxy.delays = () if proxy.delays else UNEVEN

    async def freeze_a_database(self) -> None:
        proxy = self._chance.choice(self._proxies)
        proxy.freeze()
        await self._moment(4.5)
        proxy.thaw()

    async def restart_nats(self) -> None:
        assert self._stack.nats is not None
        await self._stack.nats.restart()

    async def kill_nats(self) -> None:
        assert self._stack.nats is not None
        await self._stack.nats.kill()
        await self._moment(1.0)
        await self._stack.nats.start()

    async def wipe_nats(self) -> None:
        assert self._stack.nats is not None
        await self._stack.nats.kill()
        await self._stack.nats.wipe()
        await self._stack.nats.start()

    async def restart_postgres(self) -> None:
        assert self._stack.postgres is not None
        await self._stack.postgres.restart()

    async def kill_postgres(self) -> None:
        assert self._stack.postgres is not None
        await self._stack.postgres.kill()
        await self._moment(0.5)
        await self._stack.postgres.start()

    async def upset_the_provider(self) -> None:
        rules = self._chance.sample(PROVIDER_FAULTS, k=3)
        counted = ({**rule, "count": self._chance.randint(1, 4)} for rule in rules)
        await self._stack.sandbox.faults(REFUSALS, *counted)

    def _any_service(self) -> str:
        return self._chance.choice(list(self._stack.processes))

    async def _moment(self, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(0, most))
