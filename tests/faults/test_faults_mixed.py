"""Everything at once: two hundred posts, and something breaks every second. Then it is healed, and held to its word.

The seed is printed; POSTFLOW_FAULTS_SEED takes it again.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from devstack.supervisor import Stack
from testkit.posting import Posting

POSTS = 200
SECONDS = 45.0
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
)


class Nemesis:
    """Breaks one thing after the other, and repairs each after a moment."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        self._stack = stack
        self._chance = chance
        self.deeds: Counter[str] = Counter()
        self.ended_by_themselves: list[str] = []

    async def rage(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deeds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self.kill_a_service),
            (4, self.stop_a_service),
            (3, self.freeze_a_service),
            (2, self.restart_nats),
            (2, self.kill_nats),
            (1, self.wipe_nats),
            (1, self.restart_postgres),
            (2, self.kill_postgres),
            (6, self.upset_the_provider),
        ]
        weights, choices = [weight for weight, _ in deeds], [deed for _, deed in deeds]
        end = loop.time() + seconds
        while loop.time() < end:
            (deed,) = self._chance.choices(choices, weights)
            self.deeds[deed.__name__] += 1
            await deed()
            self.ended_by_themselves += [name for name in self._stack.targets if not self._stack.running(name)]
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))

    async def kill_a_service(self) -> None:
        name = self._any_service()
        await self._stack.kill(name)
        await self._moment(1.0)
        await self._stack.start(name)

    async def stop_a_service(self) -> None:
        await self._stack.restart(self._any_service())

    async def freeze_a_service(self) -> None:
        """Now and then for longer than the publisher's claims last."""
        pid = self._stack.pid(self._any_service())
        os.kill(pid, signal.SIGSTOP)
        await self._moment(4.5)
        os.kill(pid, signal.SIGCONT)

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
        await self._stack.sandbox.faults(*({**rule, "count": self._chance.randint(1, 4)} for rule in rules))

    def _any_service(self) -> str:
        return self._chance.choice(list(self._stack.targets))

    async def _moment(self, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(0, most))


async def test_whatever_breaks_every_promise_is_kept(stack: Stack, posting: Posting) -> None:
    seed = int(os.environ.get("POSTFLOW_FAULTS_SEED", random.randrange(2**32)))
    print(f"POSTFLOW_FAULTS_SEED={seed}")  # noqa: T201 - shown when the test fails
    nemesis = Nemesis(stack, random.Random(seed))
    async with asyncio.TaskGroup() as group:
        group.create_task(_post(stack, posting, random.Random(seed + 1)))
        group.create_task(nemesis.rage(SECONDS))
    await stack.sandbox.clear_faults()
    print(dict(nemesis.deeds))  # noqa: T201 - as above
    history = await posting.check_all_ended(within=90)
    assert nemesis.ended_by_themselves == []
    assert len(history.jobs) == POSTS
    # A post may fail for good: its provider was away five times. That is no rule.
    published = sum(job["state"] == "PUBLISHED" for job in history.jobs)
    assert published >= POSTS * 0.95, Counter(job["state"] for job in history.jobs)


async def _post(stack: Stack, posting: Posting, chance: random.Random) -> None:
    """As clients do: a few at a time, due in a moment."""
    numbers = iter(range(POSTS))
    for batch in iter(lambda: [number for _, number in zip(range(10), numbers, strict=False)], []):
        drafts = [f"post-{number}" for number in batch]
        for draft in chance.sample(drafts, k=5):
            await stack.sandbox.mode(posting.tenant.external(f"of-{draft}"), "lookup")
        await posting.schedule(*drafts, ahead=chance.uniform(1, 6))
        await asyncio.sleep(SECONDS / (POSTS / 10) - 0.5)
