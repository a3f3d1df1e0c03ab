"""Measures posts that are all due at once: their rate, and what each costs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from benchmarks import seed
from benchmarks.processes import SANDBOX
from benchmarks.profiles import Profiler
from benchmarks.sites import Site
from benchmarks.wal import Log, Written
from servicekit.clock import SystemClock

_LIMIT = 600.0


class Mark(NamedTuple):
    """A moment in the streams, by the messages that each has had."""

    commands: int
    envelopes: int


class Counted(NamedTuple):
    """Messages and events of one post."""

    commands: float
    """Messages of PUBLISH."""
    events: float
    """Those of Publisher."""
    envelopes: float
    """Messages of EVENTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """A post of a drain on average."""

    posts: int
    per_second: float
    cpu: Mapping[str, float]
    """Microseconds by process, the provider apart."""
    sandbox: float
    counted: Counted
    written: Written

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


async def drain(site: Site, posts: int, profiler: Profiler) -> Drained:
    """Writes the posts into the databases, shows them to Queue, waits until each service knows that they are out."""
    wanted = seed.posts(posts, "drain")
    due = SystemClock().now() - timedelta(seconds=1)
    await site.seeder.accounts(wanted)
    await site.seeder.scheduled(wanted, due)
    log = Log(site.stack.state.path / "postgres/cluster/data", site.stack.database_urls)
    before = await mark(site)
    processes = site.processes()
    cpu = processes.cpu()
    async with profiler.recording(site.stack, f"pipeline-{posts}"):
        start = await site.stored.release(due)
        used = await site.streams.drained(before.commands + posts, lambda: processes.since(cpu), within=_LIMIT)
    streamed, end = await counted(site, before, posts), await log.position()
    await check(site, wanted)
    each = {name: seconds / posts * 1e6 for name, seconds in used.items()}
    return Drained(
        posts=posts,
        per_second=posts / await _elapsed(site),
        cpu={name: spent for name, spent in each.items() if name != SANDBOX},
        sandbox=each[SANDBOX],
        counted=streamed,
        written=await log.written(start, end),
    )


async def mark(site: Site) -> Mark:
    return Mark(await site.streams.commands(), await site.streams.envelopes())


async def counted(site: Site, before: Mark, posts: int) -> Counted:
    """Returns what has gone through the streams since that moment, per post."""
    after = await mark(site)
    return Counted(
        commands=(after.commands - before.commands) / posts,
        events=await site.streams.events(before.envelopes, after.envelopes, context="publisher") / posts,
        envelopes=(after.envelopes - before.envelopes) / posts,
    )


async def check(site: Site, wanted: Sequence[seed.Post]) -> None:
    """Fails unless each post went out exactly once, and Queue and Drafts show it as published."""
    effects = Counter(str(effect["account"]) for effect in site.stack.sandbox.effects())
    wrong = {post.account_id: effects[post.account_id] for post in wanted if effects[post.account_id] != 1}
    assert not wrong, f"{len(wrong)} posts did not go out exactly once: {dict(list(wrong.items())[:5])}"
    for service, query, ids in (
        ("queue", _PUBLISHED_SLOTS, [post.slot_id for post in wanted]),
        ("drafts", _PUBLISHED_DRAFTS, [post.draft_id for post in wanted]),
    ):
        found = await site.stored.value(service, query, ids)
        assert found == len(wanted), f"{service} shows {found:,} of {len(wanted):,} posts as published"


async def _elapsed(site: Site) -> float:
    """Returns the seconds from the provider's first effect to the last change of a draft."""
    first = min(datetime.fromisoformat(effect["time"]) for effect in site.stack.sandbox.effects())
    last = await site.stored.time("drafts", "select max(update_time) from draft")
    return (last - first).total_seconds()


_PUBLISHED_SLOTS = "select count(*) from slot where state = 'PUBLISHED' and id = any($1)"
_PUBLISHED_DRAFTS = "select count(*) from draft where state = 'PUBLISHED' and id = any($1)"
