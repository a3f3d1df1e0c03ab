"""Measures whether overload makes more work: commands and events per post while posts wait for minutes.

Two backlogs, each of posts that are all due at once: Publisher is stopped for a while and started again, and a provider
that answers after seconds. Each post must go out exactly once all the same.
"""

import asyncio
import sys
from dataclasses import dataclass
from datetime import timedelta

from benchmarks import seed, sites
from benchmarks.drain import Counted, Mark, check, counted, mark
from benchmarks.result import Result
from benchmarks.sites import Site
from servicekit.clock import SystemClock

_OVERDUE = timedelta(seconds=1)
_MOST_COMMANDS, _MOST_EVENTS = 1.02, 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    posts: int
    """Posts that are due while Publisher is stopped."""
    stopped: float
    """Seconds for which it is."""
    slow_posts: int
    """Posts that are due while the provider is slow."""
    answer_seconds: float
    """Seconds after which it answers."""


async def measure(load: Load) -> list[Result]:
    async with sites.running() as site:
        print(f"measuring: Publisher down for {load.stopped:g} s", file=sys.stderr, flush=True)
        away = await _away(site, load)
    async with sites.running() as site:
        print(f"measuring: a provider that answers after {load.answer_seconds:g} s", file=sys.stderr, flush=True)
        slow = await _slow(site, load)
    return [
        *results(f"{load.posts:,} due, Publisher down for {load.stopped:g} s", away),
        *results(f"{load.slow_posts:,} due, provider answers after {load.answer_seconds:g} s", slow),
    ]


def results(backlog: str, per_post: Counted) -> list[Result]:
    return [
        Result(name=f"commands, {backlog}", value=per_post.commands, unit="per post", target=_MOST_COMMANDS),
        Result(name=f"events, {backlog}", value=per_post.events, unit="per post", target=_MOST_EVENTS),
    ]


async def _away(site: Site, load: Load) -> Counted:
    wanted = await _waiting(site, load.posts)
    before = await mark(site)
    await site.stack.stop("publisher")
    await site.stored.release(SystemClock().now() - _OVERDUE)
    await asyncio.sleep(load.stopped)
    await site.stack.start("publisher")
    return await _per_post(site, wanted, before, within=60 + load.posts / 200)


async def _slow(site: Site, load: Load) -> Counted:
    wanted = await _waiting(site, load.slow_posts)
    before = await mark(site)
    await site.stack.sandbox.faults({"fault": "slow", "seconds": load.answer_seconds})
    await site.stored.release(SystemClock().now() - _OVERDUE)
    # Publisher has 64 requests in flight at a provider at most; here it gets twice the time that they need.
    within = 60 + load.slow_posts * load.answer_seconds / 32
    return await _per_post(site, wanted, before, within=within)


async def _waiting(site: Site, posts: int) -> list[seed.Post]:
    wanted = seed.posts(posts, "overload")
    await site.seeder.accounts(wanted)
    await site.seeder.scheduled(wanted, SystemClock().now() - _OVERDUE)
    return wanted


async def _per_post(site: Site, wanted: list[seed.Post], before: Mark, *, within: float) -> Counted:
    await site.streams.drained(before.commands + len(wanted), lambda: None, within=within)
    await check(site, wanted)
    return await counted(site, before, len(wanted))
