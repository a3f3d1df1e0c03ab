"""Many drafts, and something breaks every second; then all is healed, and every promise is checked.

`python -m testkit.stack.mixed_run --seeds 20 --posts 300` runs seed after seed, each on a stack of its own.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from devstack.errors import StackError
from devstack.stack import Stack
from testkit.stack.author import Author
from testkit.stack.history import History
from testkit.stack.nemesis import Nemesis
from testkit.stack.posting import Posting
from testkit.stack.proxy import Proxy
from testkit.stack.tenant import Clients, Tenant

POSTS_PER_SECOND = 5.0
AT_ONCE = 80
HEALED_WITHIN = 150.0
BROKEN = (AssertionError, ExceptionGroup, StackError, grpc.aio.AioRpcError, OSError)
"""The next seed runs all the same."""
REPLICAS = {"publisher": 2, "queue": 2}

# A claim is held for 3.5 s, a question is asked after one, and a person after fifteen: a crash is over in about five.
QUICK = {
    "POSTFLOW_PUBLISHER_REQUEST_TIMEOUT": "1.5",
    "POSTFLOW_PUBLISHER_LEASE_MARGIN": "2",
    "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "1",
    "POSTFLOW_PUBLISHER_UNKNOWN_DEADLINE": "15",
    "POSTFLOW_PUBLISHER_LOOKUP_AGAIN": "1",
    "POSTFLOW_PUBLISHER_RETRY_FIRST": "0.5",
    "POSTFLOW_PUBLISHER_RETRY_CAP": "2",
    "POSTFLOW_PUBLISHER_SWEEP_PERIOD": "0.25",
    "POSTFLOW_SCHEDULE_TIMER_LOCK": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    history: History
    deeds: Counter[str]
    ended_by_themselves: list[str]

    @property
    def states(self) -> Counter[str]:
        return Counter(job["state"] for job in self.history.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    stack: Stack
    proxies: Sequence[Proxy]


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Two publishers and two queues; each publisher reaches its database through a proxy of its own."""
    async with AsyncExitStack() as exits:
        stack = await exits.enter_async_context(Stack(folder, environment=QUICK, replicas=REPLICAS, respawn=False))
        proxies = []
        for publisher in ("publisher", "publisher-2"):
            proxy = await exits.enter_async_context(Proxy(stack.database_urls["publisher"]))
            exits.push_async_callback(stack.stop, publisher)
            await stack.restart(publisher, {"POSTFLOW_PUBLISHER_DATABASE_URL": proxy.url})
            proxies.append(proxy)
        yield Scene(stack=stack, proxies=proxies)


async def mixed_run(scene: Scene, *, seed: int, posts: int) -> Outcome:
    """AssertionError names every broken promise."""
    clients = Clients(scene.stack.targets)
    await clients.ready()
    posting = Posting(scene.stack, Tenant(clients, f"seed-{seed}"))
    nemesis = Nemesis(scene.stack, scene.proxies, random.Random(seed))
    await nemesis.relent()
    healed, room = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_rage(nemesis, posts / POSTS_PER_SECOND, healed))
            for number in range(posts):
                chance = random.Random(f"{seed} {number}")
                group.create_task(_live(posting, f"post-{number}", chance, number / POSTS_PER_SECOND, room, healed))
        history = await posting.check_all_ended(within=HEALED_WITHIN)
    finally:
        await clients.close()
    return Outcome(history=history, deeds=nemesis.deeds, ended_by_themselves=nemesis.ended_by_themselves)


async def _rage(nemesis: Nemesis, seconds: float, healed: asyncio.Event) -> None:
    await nemesis.rage(seconds)
    healed.set()


async def _live(
    posting: Posting, draft: str, chance: random.Random, start: float, room: asyncio.Semaphore, healed: asyncio.Event
) -> None:
    await asyncio.sleep(start)
    async with room:
        await Author(posting, draft, chance).live(chance.uniform(1, 6), healed)


async def _campaign(seeds: list[int], posts: int) -> int:
    broken = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="postflow-faults-") as folder:
            try:
                async with scene(Path(folder) / "state") as there:
                    outcome = await mixed_run(there, seed=seed, posts=posts)
            except BROKEN as error:
                broken.append(seed)
                print(f"seed {seed}: {_shown(error)}", flush=True)
                continue
        print(f"seed {seed}: kept; {dict(outcome.states)}; {dict(outcome.deeds)}", flush=True)
        if outcome.ended_by_themselves:
            broken.append(seed)
            print(f"seed {seed}: ended by themselves: {outcome.ended_by_themselves}", flush=True)
    print(f"{len(seeds)} seeds, broken: {broken}")
    return 1 if broken else 0


def _shown(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_shown(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run, one after the other")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--posts", type=int, default=300, help="drafts in each run")
    given = parser.parse_args()
    return asyncio.run(_campaign(list(range(given.first, given.first + given.seeds)), given.posts))


if __name__ == "__main__":
    sys.exit(main())
