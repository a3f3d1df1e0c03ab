"""Measures dispatch: due slots to commands, the same beside many future slots, and small tenants beside a big one."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from benchmarks import floor, lateness, seed, sites
from benchmarks.floor import Floor
from benchmarks.result import Result, percentile
from publisher_service.domain.post_job import Target, job_id
from servicekit.clock import SystemClock

_FLOOR_JOBS = 100_000
_WITHIN = 300.0
_SMALL_TENANTS = 50
_AHEAD = timedelta(seconds=20)
"""The burst is handed over before it is due, as in life."""
_UNBOUNDED = {
    # Nobody takes the commands, so that only dispatch is measured.
    "POSTFLOW_QUEUE_OUTSTANDING_LIMIT": "10000000",
    "POSTFLOW_QUEUE_ORGANIZATION_SHARE": "1",
}
_MOST_PER_COMMAND, _MOST_GROWTH, _MOST_LATE = 50.0, 1.1, 2000.0
"""20,000 commands a second; a tenth more beside the future slots; milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """Microseconds from the first command to the last, per command, and the floor of the same stack."""

    per_command: float
    floor: Floor


async def measure(due: int, future: int, burst: int) -> list[Result]:
    alone = await _dispatched(due, 0)
    beside = await _dispatched(due, future, of_others=True)
    behind = await _dispatched(due, future)
    return [*rates(due, alone, future, beside, behind), *fairness(burst, await _late(burst))]


def rates(due: int, alone: Dispatched, future: int, beside: Dispatched, behind: Dispatched) -> list[Result]:
    """Returns the time per command, and how much longer it takes while there are many future slots.

    These are `beside` the due ones on other accounts, or `behind` them on the same: then each dispatch also writes when
    its account is due next.
    """
    each = f"{due:,} slots due at once"
    return [
        Result(name=f"dispatch, {each}", value=alone.per_command, unit="us per command", target=_MOST_PER_COMMAND),
        Result(name="dispatch, rate", value=1e6 / alone.per_command, unit="commands a second"),
        Result(
            name="dispatch against the floor",
            value=alone.per_command,
            unit="us per command",
            baseline=1e6 / alone.floor.per_second,
            note="bare SQL claim and acknowledge, elapsed",
        ),
        *(
            Result(
                name=f"dispatch beside {future:,} future slots, {whose}",
                value=dispatched.per_command,
                unit="us per command",
                baseline=alone.per_command,
                note=each,
                target=_MOST_GROWTH,
            )
            for whose, dispatched in (("other accounts", beside), ("same accounts", behind))
        ),
    ]


def fairness(burst: int, late: Sequence[float]) -> list[Result]:
    beside = f"{len(late)} tenants with one post beside one with {burst:,}"
    return [
        Result(name=f"lateness p50, {beside}", value=percentile(late, 0.5), unit="ms"),
        Result(name=f"lateness p99, {beside}", value=percentile(late, 0.99), unit="ms", target=_MOST_LATE),
    ]


async def _dispatched(due: int, future: int, *, of_others: bool = False) -> Dispatched:
    whose = "of other accounts" if of_others else "of the same accounts"
    _announce(f"dispatch of {due:,} slots" + (f" beside {future:,} future ones {whose}" if future else ""))
    async with sites.running(_UNBOUNDED) as site:
        await site.stack.stop("publisher")
        wanted, time = seed.posts(due, "dispatch"), SystemClock().now() - timedelta(seconds=1)
        if of_others:
            tomorrow = time + timedelta(days=1)
            await site.seeder.slots(seed.posts(due, "later"), tomorrow)
            await site.seeder.later_slots(future // due - 1, tomorrow)
            await site.stored.release(tomorrow)
        await site.seeder.slots(wanted, time)
        await site.seeder.later_slots(0 if of_others else future // due, time + timedelta(days=1))
        bare = await floor.rounds(site.postgres, _FLOOR_JOBS)
        before = await site.streams.commands()
        await site.stored.release(time)
        await site.streams.sent(before + due, within=_WITHIN)
        first = await site.streams.command_time(before + 1)
        last = await site.streams.command_time(before + due)
        bare += await floor.rounds(site.postgres, _FLOOR_JOBS)
    return Dispatched(per_command=(last - first).total_seconds() / due * 1e6, floor=floor.middle(bare))


async def _late(burst: int) -> list[float]:
    """Returns how late the posts of the small tenants are, in milliseconds."""
    _announce(f"{_SMALL_TENANTS} small tenants beside a burst of {burst:,} posts")
    async with sites.running() as site:
        big = [of_tenant(post, "big") for post in seed.posts(burst, "burst")]
        small = [of_tenant(post, f"small-{number}") for number, post in enumerate(seed.posts(_SMALL_TENANTS, "small"))]
        await site.seeder.accounts([*big, *small])
        due = SystemClock().now() + _AHEAD + timedelta(seconds=len(big) / 1000)
        before = await site.streams.commands()
        await site.seeder.scheduled([*big, *small], due)
        assert SystemClock().now() < due - _AHEAD / 2, "the burst was written too slowly to be in time"
        await site.stored.release(due)
        await site.streams.drained(before + len(big) + len(small), lambda: None, within=_WITHIN)
        sent = lateness.effect_times(site.stack)
    return [(sent[post.account_id] - due.timestamp()) * 1000 for post in small]


def of_tenant(post: seed.Post, organization_id: str) -> seed.Post:
    target = Target(social_account_id=post.account_id, channel="facebook")
    return replace(post, organization_id=organization_id, job_id=job_id(organization_id, post.draft_id, target))


def _announce(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)
