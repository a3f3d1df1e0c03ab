"""Measures adding to queues: how the time of a call grows with the queue, and the rates of single and batch calls.

A rate is measured while the other services follow, and that of a batch also alone: a call begins once they have
followed. The floor is bare SQL that inserts the same rows in transactions of the size of a call, right after them.
"""

import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

import grpc

from benchmarks import bare_slots, sites
from benchmarks.callers import made
from benchmarks.profiles import Profiler
from benchmarks.queue_calls import BATCH, MOST_WEEKLY_SLOTS, Account, Post, QueueCalls, Slot, batches
from benchmarks.result import Result
from benchmarks.sites import Site

_SHALLOW = 10
_PAIRS = 300
_SHALLOW_ACCOUNTS = 30
"""Enough that a shallow queue is about as deep after the measurement as it was before."""
_CLIENTS, _BATCH_CLIENTS = 16, 4
_ORGANIZATIONS, _ACCOUNTS_OF_EACH = 40, 10
_WEEKLY_SLOTS = 84
_ROUNDS, _CALLS_ALONE = 3, 9
_ADDED, _IN_BATCHES = 5, 100
"""Drafts of each account in a round."""
_WITH_BATCHES = [f"org-{number}" for number in range(10)]
_MOST_GROWTH, _MOST_PER_ADD, _MOST_PER_ITEM = 1.1, 2500.0, 100.0
"""Microseconds: 400 calls a second, and 10,000 items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Seconds per slot of each round: of the calls, of the bare INSERT, and of CPU by process.

    The CPU is that of everything until the events have settled.
    """

    calls: list[float]
    bare: list[float]
    cpu: list[Mapping[str, float]]


async def measure(depth: int, profiler: Profiler) -> list[Result]:
    async with sites.running() as site, AsyncExitStack() as stack:
        channels = {
            service: await stack.enter_async_context(grpc.aio.insecure_channel(target))
            for service, target in site.stack.targets.items()
        }
        bench = _Bench(site, QueueCalls(channels), profiler)
        deep, shallow = await bench.depths(depth)
        accounts = await bench.accounts()
        single = await bench.single(accounts)
        batch = await bench.batch(accounts)
        alone = await bench.alone(accounts)
    return [*growth(depth, deep, shallow), *rates(single, batch, alone)]


def growth(depth: int, deep: Sequence[float], shallow: Sequence[float]) -> list[Result]:
    """Compares the seconds of calls for a deep queue with those for shallow ones."""
    return [
        Result(
            name=f"AddToQueue at depth {depth:,}",
            value=median(deep) * 1000,
            unit="ms",
            baseline=median(shallow) * 1000,
            note=f"depth {_SHALLOW}, by turns",
            target=_MOST_GROWTH,
        ),
    ]


def rates(single: Rate, batch: Rate, alone: Rate) -> list[Result]:
    each = f"AddToQueue, {_CLIENTS} clients, {_ORGANIZATIONS * _ACCOUNTS_OF_EACH} accounts"
    many = f"BatchAddToQueue of {BATCH:,}"
    found = [
        *_rate(each, single, "slot", _MOST_PER_ADD, "bare INSERT of each slot"),
        *_rate(f"{many}, {_BATCH_CLIENTS} clients", batch, "item", _MOST_PER_ITEM, f"bare INSERT of {BATCH:,} slots"),
        *_rate(f"{many}, alone", alone, "item", _MOST_PER_ITEM, f"bare INSERT of {BATCH:,} slots"),
    ]
    return [*found, *_cpu("AddToQueue", single), *_cpu(many, batch), *_cpu(f"{many}, alone", alone)]


def _rate(name: str, rate: Rate, what: str, target: float, note: str) -> list[Result]:
    taken, bare = median(rate.calls) * 1e6, median(rate.bare) * 1e6
    wanted = 1e6 / target
    return [
        Result(name=name, value=taken, unit=f"us per {what}", target=target),
        Result(name=f"{name}, rate", value=1e6 / taken, unit=f"{what}s a second", baseline=wanted, note="the target"),
        Result(name=f"{name}, against the floor", value=taken, unit=f"us per {what}", baseline=bare, note=note),
    ]


def _cpu(name: str, rate: Rate) -> list[Result]:
    """Returns where the CPU goes, by process."""
    by_process = {process: median(each[process] for each in rate.cpu) * 1e6 for process in rate.cpu[0]}
    total = median(sum(each.values()) for each in rate.cpu) * 1e6
    return [
        Result(of=f"CPU of {name}", name=process, value=used, unit="us per slot")
        for process, used in {**by_process, "all": total}.items()
    ]


Add = Callable[[Sequence[Post]], Awaitable[list[Slot]]]


class _Bench:
    def __init__(self, site: Site, calls: QueueCalls, profiler: Profiler) -> None:
        self._site = site
        self._calls = calls
        self._profiler = profiler

    async def depths(self, depth: int) -> tuple[list[float], list[float]]:
        """Returns the seconds of calls for a queue of that depth, and for shallow ones, made by turns."""
        _announce(f"AddToQueue at depths {depth:,} and {_SHALLOW}")
        deep = Account("deep", "deep")
        others = [Account("deep", f"shallow-{number}") for number in range(_SHALLOW_ACCOUNTS)]
        await self._calls.connect([deep, *others], weekly_slots=MOST_WEEKLY_SLOTS)
        await self._add([*await self._drafts([deep], depth), *await self._drafts(others, _SHALLOW)])
        in_deep = await self._drafts([deep], _PAIRS)
        in_shallow = await self._drafts(others, _PAIRS // len(others))
        took: tuple[list[float], list[float]] = ([], [])
        for number, pair in enumerate(zip(in_deep, in_shallow, strict=True)):
            for side in (number % 2, 1 - number % 2):
                took[side].append(await self._timed(pair[side]))
        return took

    async def accounts(self) -> list[Account]:
        accounts = [
            Account(f"org-{owner}", f"account-{owner}-{number}")
            for number in range(_ACCOUNTS_OF_EACH)
            for owner in range(_ORGANIZATIONS)
        ]
        await self._calls.connect(accounts, weekly_slots=_WEEKLY_SLOTS)
        return accounts

    async def single(self, accounts: Sequence[Account]) -> Rate:
        return await self._rate("AddToQueue", accounts, _ADDED, self._add, at_once=1, connections=_CLIENTS)

    async def batch(self, accounts: Sequence[Account]) -> Rate:
        of_few = [account for account in accounts if account.organization_id in _WITH_BATCHES]
        return await self._rate(
            "BatchAddToQueue", of_few, _IN_BATCHES, self._add_batches, at_once=BATCH, connections=_BATCH_CLIENTS
        )

    async def alone(self, accounts: Sequence[Account]) -> Rate:
        """Measures one call at a time: each finds all services idle."""
        of_one = [account for account in accounts if account.organization_id == _WITH_BATCHES[0]]
        of_each = BATCH // len(of_one)
        return await self._rate(
            "alone", of_one, of_each, self._add_batches, at_once=BATCH, connections=1, rounds=_CALLS_ALONE
        )

    async def _rate(
        self,
        name: str,
        accounts: Sequence[Account],
        of_each: int,
        add: Add,
        *,
        at_once: int,
        connections: int,
        rounds: int = _ROUNDS,
    ) -> Rate:
        _announce(name)
        await add(await self._drafts(accounts, of_each))
        await self._site.stored.analyze("queue")
        rate = Rate(calls=[], bare=[], cpu=[])
        for _ in range(rounds):
            posts = await self._drafts(accounts, of_each)
            processes = self._site.processes()
            async with self._profiler.recording(self._site.stack, f"queue-{name}"):
                cpu, began = processes.cpu(), time.perf_counter()
                slots = await add(posts)
                rate.calls.append((time.perf_counter() - began) / len(posts))
                used = await self._site.streams.settled(lambda: processes.since(cpu))  # noqa: B023 - awaited at once
            rate.cpu.append({process: seconds / len(posts) for process, seconds in used.items()})
            url = self._site.stack.database_urls["queue"]
            rate.bare.append(await bare_slots.inserted(url, slots, at_once=at_once, connections=connections))
        return rate

    async def _drafts(self, accounts: Sequence[Account], of_each: int) -> list[Post]:
        """Creates drafts, of which Queue knows then."""
        posts = await self._calls.drafts(accounts, of_each)
        await self._site.streams.settled(lambda: None)
        return posts

    async def _add(self, posts: Sequence[Post]) -> list[Slot]:
        slots: list[Slot] = []

        async def add(number: int) -> None:
            slots.append(await self._calls.add(posts[number]))

        await made(len(posts), _CLIENTS, add)
        return slots

    async def _add_batches(self, posts: Sequence[Post]) -> list[Slot]:
        slots, calls = list[Slot](), batches(posts)

        async def add(number: int) -> None:
            slots.extend(await self._calls.add_batch(calls[number]))

        await made(len(calls), _BATCH_CLIENTS, add)
        return slots

    async def _timed(self, post: Post) -> float:
        began = time.perf_counter()
        await self._calls.add(post)
        return time.perf_counter() - began


def _announce(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)
