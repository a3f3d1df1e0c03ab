"""Lateness of one provider's posts, alone and while another provider takes two seconds for each request."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from benchmarks import seed
from benchmarks.lateness import effect_times
from benchmarks.lines import command
from benchmarks.result import Result, percentile
from benchmarks.sites import Site
from servicekit.clock import SystemClock
from testkit.eventually import eventually

_SLOW_POSTS = 600
"""More than the slow provider's senders begin within the measurement."""
_ANSWER = 2.0
_GROUPS = 100
_AT_ONCE = 5
_AHEAD = timedelta(seconds=8)
_EVERY = timedelta(milliseconds=100)
_LIMIT = 60.0


async def measure(site: Site) -> list[Result]:
    """Makes posts due at a steady rate; then again, while those of a slow provider fill all of its senders."""
    alone = await _late(site, "alone")
    slow = seed.posts(_SLOW_POSTS, "slow")
    await site.seeder.accounts(slow, provider="sandbox-blind")
    await site.seeder.jobs(slow, SystemClock().now())
    rules = [{"fault": "slow", "seconds": _ANSWER, "account": post.account_id} for post in slow]
    await site.stack.sandbox.faults(*rules)
    await command(site.stack, slow, SystemClock().now())
    beside = await _late(site, "beside")
    return [
        Result(name="lateness p50", value=percentile(alone, 0.5), unit="ms"),
        Result(name="lateness p99", value=percentile(alone, 0.99), unit="ms"),
        Result(name="lateness beside a slow provider p50", value=percentile(beside, 0.5), unit="ms"),
        Result(name="lateness beside a slow provider p99", value=percentile(beside, 0.99), unit="ms", target=50),
    ]


async def _late(site: Site, name: str) -> list[float]:
    """Returns the lateness of posts of which some are due every tenth of a second."""
    wanted = seed.posts(_GROUPS * _AT_ONCE, name)
    await site.seeder.accounts(wanted)
    start = SystemClock().now() + _AHEAD
    await site.seeder.jobs(wanted, start)
    dues = {post.account_id: start + index // _AT_ONCE * _EVERY for index, post in enumerate(wanted)}
    for first in range(0, len(wanted), _AT_ONCE):
        group = wanted[first : first + _AT_ONCE]
        await command(site.stack, group, dues[group[0].account_id])
    assert SystemClock().now() < start, "the commands were sent too slowly"
    return await eventually(lambda: _lateness(site, dues), within=_LIMIT)


def _lateness(site: Site, dues: Mapping[str, datetime]) -> list[float]:
    """Returns the milliseconds between the time of each post and its effect, once all are out."""
    out = effect_times(site.stack)
    if dues.keys() - out.keys():
        return []
    return [(out[account] - due.timestamp()) * 1000 for account, due in dues.items()]
