"""Runs many drafts while something breaks every second, then repairs everything and checks every promise.

`python -m testkit.stack.mixed_run --seeds 20 --posts 300` runs seed after seed, each on a stack of its own; `--beside`
gives each service a replica of another release. `--failpoints kill drop` breaks one of two publishers at each of its
failpoints instead.
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
from devstack.layout import SERVICES, console_script
from devstack.stack import Stack
from testkit.stack.author import Author
from testkit.stack.boundaries import BOUNDARIES
from testkit.stack.failpoint_matrix import ACTIONS, matrix
from testkit.stack.history import History
from testkit.stack.holder import Holder
from testkit.stack.nemesis import Nemesis
from testkit.stack.posting import Posting
from testkit.stack.proxy import Proxy
from testkit.stack.tenant import Clients, Tenant

POSTS_PER_SECOND = 5.0
AT_ONCE = 80
REPAIRED_WITHIN = 150.0
BROKEN = (AssertionError, ExceptionGroup, StackError, grpc.aio.AioRpcError, OSError)
"""Failures of one seed; the next one still runs."""
HOLDERS = ("ann", "ben")
REPLICAS = {"publisher": 2, "queue": 2}

# A lease lasts 3.5 s, a look-up follows after one, NEEDS_ATTENTION after fifteen: a crash is over in about five.
QUICK = {
    "POSTFLOW_PUBLISHER_REQUEST_TIMEOUT": "1.5",
    "POSTFLOW_PUBLISHER_LEASE_MARGIN": "2",
    "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "1",
    "POSTFLOW_PUBLISHER_UNKNOWN_DEADLINE": "15",
    "POSTFLOW_PUBLISHER_LOOKUP_AGAIN": "1",
    "POSTFLOW_PUBLISHER_CHECK_AGAIN": "0.5",
    "POSTFLOW_PUBLISHER_RETRY_FIRST": "0.5",
    "POSTFLOW_PUBLISHER_RETRY_CAP": "2",
    "POSTFLOW_PUBLISHER_SWEEP_PERIOD": "0.25",
    "POSTFLOW_SCHEDULE_TIMER_LOCK": "2",
    # Overdue posts of a queue that is resumed go out this much later.
    "POSTFLOW_QUEUE_NOTICE": "2",
}

# Some posts stand still between claim and request: what stops them in that moment has to be exact.
SLOW_SENDS = {"POSTFLOW_PUBLISHER_FAILPOINTS": "publisher.send.claimed=sleep:0.3:0.2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    history: History
    answers: Counter[str]
    """How many calls of each kind were answered OK."""
    faults: Counter[str]
    ended_by_themselves: list[str]

    @property
    def states(self) -> Counter[str]:
        return Counter(job["state"] for job in self.history.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedStack:
    stack: Stack
    proxies: Sequence[Proxy]


@asynccontextmanager
async def proxied_stack(folder: Path, beside: Path | None = None) -> AsyncIterator[ProxiedStack]:
    """Starts two publishers, each with a proxy before its database, and two queues.

    `beside` is the folder of another release's programs: then every service has a replica, which runs them.
    """
    replicas = dict.fromkeys(SERVICES, 2) if beside else REPLICAS
    async with AsyncExitStack() as exits:
        stack = await exits.enter_async_context(
            Stack(folder, environment=QUICK, replicas=replicas, replica_scripts=beside, respawn=False)
        )
        proxies = []
        for publisher in ("publisher", "publisher-2"):
            proxy = await exits.enter_async_context(Proxy(stack.database_urls["publisher"]))
            exits.push_async_callback(stack.stop, publisher)
            await stack.restart(publisher, {"POSTFLOW_PUBLISHER_DATABASE_URL": proxy.url, **SLOW_SENDS})
            proxies.append(proxy)
        yield ProxiedStack(stack=stack, proxies=proxies)


async def mixed_run(proxied: ProxiedStack, *, seed: int, posts: int) -> Outcome:
    """Runs one seed; raises AssertionError with every broken promise."""
    clients = Clients(proxied.stack.targets)
    await clients.ready()
    posting = Posting(proxied.stack, Tenant(clients, f"seed-{seed}"))
    nemesis = Nemesis(proxied.stack, proxied.proxies, random.Random(seed))
    await nemesis.relent()
    repaired, room = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_rage(nemesis, posts / POSTS_PER_SECOND, repaired))
            for name in HOLDERS:
                group.create_task(Holder(posting, name, random.Random(f"{seed} {name}")).rage(repaired))
            for number in range(posts):
                chance = random.Random(f"{seed} {number}")
                group.create_task(_live(posting, f"post-{number}", chance, number / POSTS_PER_SECOND, room, repaired))
        history = await posting.check_all_ended(within=REPAIRED_WITHIN)
    finally:
        await clients.close()
    return Outcome(
        history=history,
        answers=posting.answers,
        faults=nemesis.faults,
        ended_by_themselves=nemesis.ended_by_themselves,
    )


async def _rage(nemesis: Nemesis, seconds: float, repaired: asyncio.Event) -> None:
    await nemesis.rage(seconds)
    repaired.set()


async def _live(
    posting: Posting, draft: str, chance: random.Random, start: float, room: asyncio.Semaphore, repaired: asyncio.Event
) -> None:
    await asyncio.sleep(start)
    async with room:
        await Author(posting, draft, chance).live(chance.uniform(1, 6), repaired)


async def _campaign(seeds: list[int], posts: int, beside: Path | None) -> int:
    failed = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="postflow-faults-") as folder:
            try:
                async with proxied_stack(Path(folder) / "state", beside) as proxied:
                    outcome = await mixed_run(proxied, seed=seed, posts=posts)
            except BROKEN as error:
                failed.append(seed)
                print(f"seed {seed}: {_shown(error)}", flush=True)
                continue
        print(f"seed {seed}: promises kept; {dict(outcome.states)}; {dict(outcome.faults)}", flush=True)
        print(f"seed {seed}: answered OK: {dict(sorted(outcome.answers.items()))}", flush=True)
        if outcome.ended_by_themselves:
            failed.append(seed)
            print(f"seed {seed}: ended by themselves: {outcome.ended_by_themselves}", flush=True)
    print(f"{len(seeds)} seeds, failed: {failed}")
    return 1 if failed else 0


async def _break_everywhere(actions: Sequence[str], at: str) -> int:
    failed = []
    for action in actions:
        with tempfile.TemporaryDirectory(prefix="postflow-faults-") as folder:
            async with matrix(Path(folder)) as broken:
                for place in (place for place in BOUNDARIES if at in place):
                    try:
                        await broken.break_at(place, action)
                        await broken.check()
                    except BROKEN as error:
                        failed.append(f"{action} at {place}")
                        print(f"{action} at {place}: {_shown(error)}", flush=True)
                    else:
                        print(f"{action} at {place}: promises kept", flush=True)
    print(f"failed: {failed}")
    return 1 if failed else 0


def _shown(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_shown(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, run one after another")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--posts", type=int, default=300, help="drafts per run")
    parser.add_argument(
        "--beside",
        type=programs,
        metavar="CHECKOUT",
        help="a release with its .venv, of which each service has a replica",
    )
    parser.add_argument(
        "--failpoints", nargs="+", choices=ACTIONS, default=(), help="break a publisher at each failpoint in these ways"
    )
    parser.add_argument("--at", default="", help="only at failpoints whose name contains this")
    given = parser.parse_args()
    if given.failpoints:
        return asyncio.run(_break_everywhere(given.failpoints, given.at))
    return asyncio.run(_campaign(list(range(given.first, given.first + given.seeds)), given.posts, given.beside))


def programs(checkout: str) -> Path:
    folder = Path(checkout).absolute() / ".venv/bin"
    missing = [str(script) for service in SERVICES if not (script := console_script(service, folder)).exists()]
    if missing:
        raise argparse.ArgumentTypeError(f"there is no {missing[0]}: run tools/bootstrap .venv there")
    return folder


if __name__ == "__main__":
    sys.exit(main())
