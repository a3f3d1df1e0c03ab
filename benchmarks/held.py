"""Measures what posts cost that are held back for long: over a daily cap, or behind a hold."""

import asyncio
import time
from datetime import datetime, timedelta

import asyncpg

from benchmarks import seed, sites
from benchmarks.lines import of_account
from benchmarks.result import Result
from benchmarks.sites import Site
from servicekit.clock import SystemClock

_ACCOUNTS = 100
_PAUSE = 15.0
"""Seconds that a stack has to come to rest."""

# Each account has used up its cap; the day ends in half a day.
_PARK = """
    update post_job set state = 'WAITING', state_reason = 'DAILY_CAP', parked_on = 'action:POST', not_after = $1,
        next_action_time = $1, expected_time = $2
"""
_CAP = """
    insert into account_action (organization_id, social_account_id, action, cap, used, local_date, day_start, day_end)
    select organization_id, social_account_id, 'POST', 5, 5, current_date, $1::timestamptz - interval '1 day', $1
    from account_gate
"""
_LIMIT = "update account_gate set limited = true"
_WAIT = """
    insert into parked_line (organization_id, social_account_id, parked_on, wake_time)
    select organization_id, social_account_id, 'action:POST', $1 from account_gate
"""
# All lines behind holds of their accounts.
_HOLD = "update account_gate set held = true, lined = true, wake_time = null"
_LINE = """
    update post_job set state = 'BLOCKED', state_reason = 'ACCOUNT_ON_HOLD', parked_on = '', not_after = $1,
        next_action_time = $1, expected_time = null
"""
_FORGET = "delete from parked_line"


async def measure(posts: int, seconds: int) -> list[Result]:
    async with sites.running() as site:
        idle = await _cpu(site, seconds)
        wanted = [each for account in seed.posts(_ACCOUNTS, "held") for each in _of(account, posts // _ACCOUNTS)]
        await site.seeder.accounts(seed.posts(_ACCOUNTS, "held"))
        now = SystemClock().now()
        await site.seeder.jobs(wanted, now)
        late, day_end = now + timedelta(days=30), now + timedelta(hours=12)
        await _change(site, (_PARK, late, day_end), (_CAP, day_end), (_LIMIT,), (_WAIT, day_end), ("vacuum analyze",))
        capped = await _cpu(site, seconds)
        await _change(site, (_LINE, late), (_HOLD,), (_FORGET,), ("vacuum analyze",))
        held = await _cpu(site, seconds)
    return [
        Result(name=f"CPU of {posts:,} posts over a daily cap", value=capped - idle, unit="% of a core", target=1),
        Result(name=f"CPU of {posts:,} posts on hold", value=held - idle, unit="% of a core", target=1),
        Result(name="CPU of the stack without them", value=idle, unit="% of a core"),
    ]


def _of(account: seed.Post, count: int) -> list[seed.Post]:
    return of_account(seed.posts(count, account.account_id), account.organization_id, account.account_id)


async def _cpu(site: Site, seconds: int) -> float:
    """Returns the share of a core that the stack uses at rest."""
    await asyncio.sleep(_PAUSE)
    processes = site.processes()
    before, began = processes.cpu(), time.perf_counter()
    await asyncio.sleep(seconds)
    return sum(processes.since(before).values()) / (time.perf_counter() - began) * 100


async def _change(site: Site, *statements: tuple[str, *tuple[datetime, ...]]) -> None:
    connection = await asyncpg.connect(site.stack.database_urls["publisher"])
    for statement, *values in statements:
        await connection.execute(statement, *values)
    await connection.close()
