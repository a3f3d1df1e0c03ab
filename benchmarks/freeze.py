"""Measures a freeze: how soon the hold of an organization answers, what it costs while it lasts, and how it ends.

Posts of many accounts are due and going out when the hold is put. The answer is compared with that to the hold of a
single account, the CPU of the frozen stack with that of the same stack before it had any post, and the pace of the
release with the setting.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import grpc

from benchmarks import seed, sites
from benchmarks.lines import of_account
from benchmarks.processes import SANDBOX
from benchmarks.result import Result, percentile
from benchmarks.sites import Site
from postflow.publisher.v1 import hold_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceStub
from servicekit.clock import SystemClock
from testkit.eventually import eventually

_ORGANIZATION = "frozen"
_ACCOUNTS = 1_000
_RATE = 500
_REST = 15.0
"""Seconds that a stack has to come to rest."""
_LIMIT = 600.0
_ANSWER = 0.02
"""Seconds until the provider answers."""

_LINE_UP = """
    update post_job set state = 'READY', state_reason = 'IN_LINE', not_after = schedule_time + interval '1 day',
        next_action_time = schedule_time + interval '1 day'
"""
_WAKE = "update account_gate set lined = true, wake_time = clock_timestamp() where organization_id = $1"
_STANDING = "select count(*) from account_gate where organization_id = $1 and (wake_time is not null or relabel)"
_SHOWN = "select count(*) from post_job where state_reason = 'ORGANIZATION_ON_HOLD'"
_OPEN = "select count(*) from open_claim"


async def measure(posts: int, seconds: int) -> list[Result]:
    async with sites.running({"POSTFLOW_PUBLISHER_RELEASE_RATE": str(_RATE)}) as site:
        before = await _idle(site, seconds)
        await _seed(site, posts)
        async with grpc.aio.insecure_channel(site.stack.targets["publisher"]) as channel:
            return await _frozen(site, PublisherServiceStub(channel), posts, seconds, before)


async def _frozen(site: Site, publisher: Any, posts: int, seconds: int, before: Mapping[str, float]) -> list[Result]:
    connection = await asyncpg.connect(site.stack.database_urls["publisher"].replace("+asyncpg", ""))
    try:
        single = [await _put(publisher, hold_pb2.HOLD_SCOPE_ACCOUNT, f"account-{number}") for number in range(20)]
        await connection.execute(_WAKE, _ORGANIZATION)
        await eventually(lambda: _has_effects(site, 200), within=60)
        took = await _put(publisher, hold_pb2.HOLD_SCOPE_ORGANIZATION, "")
        began = time.perf_counter()
        await eventually(lambda: _stands(connection), within=_LIMIT)
        shown, out = time.perf_counter() - began, len(site.stack.sandbox.effects())
        # The other services hear of each post, too.
        await site.streams.settled(lambda: None, within=_LIMIT)
        frozen = await _idle(site, seconds)
        assert len(site.stack.sandbox.effects()) == out, "a frozen post went out"
        kept = await connection.fetchval(_SHOWN)
        assert kept == posts - out, f"{kept} of {posts - out} posts show the hold"
        await publisher.ReleaseHold(pb.ReleaseHoldRequest(organization_id=_ORGANIZATION, hold_id="hold-"))
        await asyncio.sleep(seconds)
        starts = [_time(line) for line in site.stack.sandbox.effects()[out:]]
    finally:
        await connection.close()
    return [
        Result(
            name=f"freeze of {posts:,} due posts: the answer",
            value=took * 1000,
            unit="ms",
            target=1000,
        ),
        Result(
            name="the same over the hold of one account",
            value=took * 1000,
            unit="ms",
            baseline=percentile(single, 0.5) * 1000,
            note="hold of one account, median",
        ),
        Result(name="until every post shows the hold", value=shown, unit="s"),
        Result(
            name="CPU while it lasts, above idling", value=_sum(frozen) - _sum(before), unit="% of a core", target=1
        ),
        Result(
            name="posts that start in a second of the release, at most",
            value=most_in_a_second(starts),
            unit="posts",
            baseline=_RATE,
            note="the setting",
            target=1.5,
        ),
        Result(name="posts that start per second of the release", value=len(starts) / seconds, unit="posts"),
        *(
            Result(
                of="frozen", name=f"CPU: {name}", value=share, unit="% of a core", baseline=before[name], note="idling"
            )
            for name, share in frozen.items()
        ),
    ]


def _sum(shares: Mapping[str, float]) -> float:
    return sum(share for name, share in shares.items() if name != SANDBOX)


def most_in_a_second(starts: Sequence[datetime]) -> int:
    """Returns the greatest number of starts within any second."""
    ordered, first, most = sorted(starts), 0, 0
    for number, start in enumerate(ordered):
        while start - ordered[first] >= timedelta(seconds=1):
            first += 1
        most = max(most, number - first + 1)
    return most


async def _seed(site: Site, posts: int) -> None:
    accounts = [replace(each, organization_id=_ORGANIZATION) for each in seed.posts(_ACCOUNTS, "frozen")]
    await site.seeder.accounts(accounts)
    wanted = [
        post
        for number, account in enumerate(accounts)
        for post in of_account(seed.posts(posts // _ACCOUNTS, f"frozen-{number}"), _ORGANIZATION, account.account_id)
    ]
    await site.stack.sandbox.faults({"fault": "slow", "seconds": _ANSWER})
    await site.seeder.jobs(wanted, SystemClock().now())
    connection = await asyncpg.connect(site.stack.database_urls["publisher"].replace("+asyncpg", ""))
    await connection.execute(_LINE_UP)
    await connection.execute("vacuum analyze")
    await connection.close()


async def _put(publisher: Any, scope: hold_pb2.HoldScope, scope_id: str) -> float:
    request = pb.PutHoldRequest(
        organization_id=_ORGANIZATION if not scope_id else "another",
        hold_id=f"hold-{scope_id}",
        scope=scope,
        scope_id=scope_id,
        reason="measured",
    )
    began = time.perf_counter()
    await publisher.PutHold(request)
    return time.perf_counter() - began


async def _stands(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    """Waits until no line is looked at, nothing is out, and all posts show the hold."""
    assert await connection.fetchval(_STANDING, _ORGANIZATION) == 0
    assert await connection.fetchval(_OPEN) == 0
    return True


async def _has_effects(site: Site, count: int) -> bool:
    assert len(site.stack.sandbox.effects()) >= count
    return True


async def _idle(site: Site, seconds: int) -> dict[str, float]:
    """Returns the CPU of each process of a stack of which nobody asks anything, in percent of a core."""
    processes = site.processes()
    await asyncio.sleep(_REST)
    before, began = processes.cpu(), time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed = time.perf_counter() - began
    return {name: spent / elapsed * 100 for name, spent in processes.since(before).items()}


def _time(line: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(line["time"]))
