"""Daily caps are exact while many send at once, in several processes, over a midnight at which clocks change."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from publisher_service.adapters.providers.adapter import Post
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.claim import Claimed
from publisher_service.domain.outcome import (
    Absent,
    Ambiguous,
    Finding,
    Found,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import (
    AT_ONCE,
    Replica,
    TrustingAdapter,
    a_command,
    a_draft,
    a_sent,
    claims_in,
)

PROCESSES, SENDERS = 3, 50
CAPS = {"page": 5, "shop": 3, "blog": 8}
POSTS = 40
STEP, MOST_STEPS = timedelta(minutes=7), 60
"""A cap with room is looked at again after six minutes."""
_CAP = """
    insert into account_action (organization_id, social_account_id, action, cap) values ('acme', :account, 'POST', :cap)
"""
_LIMITED = "update account_gate set limited = true where social_account_id = :account"
_SCHEDULE = """
    insert into account_schedule (organization_id, social_account_id, version, deleted, time_zone, enabled)
    values ('acme', :account, 1, false, :zone, true)
"""
PATIENT = replace(AT_ONCE, unknown_deadline=timedelta(days=1))
LOST = Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m")
OUTCOMES: tuple[Outcome | None, ...] = (
    None,
    None,
    None,
    LOST,
    Rejected(reason="STATUS_422", message="m"),
    NotSent(reason="CONNECTION_REFUSED", message="m"),
    NotBegun(reason="LEASE_TOO_SHORT", message="m"),
    RateLimited(message="m", retry_after=timedelta(0)),
)
"""None is a post that is accepted."""


class Provider(TrustingAdapter):
    """Finds what the senders have put out, and proves the rest absent."""

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()

    async def look(self, post: Post) -> Finding:
        key = post.idempotency_key
        return Found(external_id=key, external_url="") if self.keys[key] else Absent()


@dataclass
class Crowd:
    """Senders on several processes, and the effects at the provider by account and local day."""

    replicas: list[Replica]
    wakes: list[WakeParked]
    clock: FrozenDatabaseClock
    zone: ZoneInfo
    dice: random.Random
    provider: Provider
    looks: bool = False
    effects: defaultdict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    async def until_used_up(self) -> None:
        """Lets time pass until each cap is used up, to the last one."""
        for _ in range(MOST_STEPS):
            self.clock.moment += STEP
            await self.send()
            if await self.used() == CAPS:
                return
        raise AssertionError(f"the caps {CAPS} are not used up: {await self.used()}")

    async def send(self) -> None:
        """All senders look for work at once, send it and settle it; no cap is exceeded meanwhile."""
        async with asyncio.TaskGroup() as group:
            for number in range(SENDERS):
                group.create_task(self._work(number % PROCESSES))
        used = await self.used()
        assert all(used[account] <= cap for account, cap in CAPS.items()), used
        for (account, day), keys in self.effects.items():
            assert len(keys) <= CAPS[account], f"{account} has {len(keys)} effects on {day}"
        assert max(self.provider.keys.values(), default=0) <= 1

    async def _work(self, process: int) -> None:
        replica = self.replicas[process]
        await self.wakes[process].look()
        await self._proceed(replica, await replica.next_in_line())
        found = await replica.recover()
        for question in found.questions if self.looks else ():
            await replica.look_up(question.job)
        await self._proceed(replica, claims_in(await replica.claim(found.due)) if found.due else [])

    async def _proceed(self, replica: Replica, claimed: list[Claimed]) -> None:
        for each in claimed:
            outcome = self.dice.choice(OUTCOMES)
            if outcome is None or (outcome is LOST and self.dice.random() < 0.5):
                self.provider.keys[each.idempotency_key] += 1
                local = (each.job.last_attempt_time or self.clock.moment).astimezone(self.zone).date().isoformat()
                self.effects[each.job.target.social_account_id, local].append(each.idempotency_key)
            await asyncio.sleep(0)
            await replica.settle([a_sent(each, outcome)])

    async def used(self) -> dict[str, int]:
        rows = await self.replicas[0].rows("""
            select a.social_account_id, a.used, (
                select count(*) from reservation r where r.social_account_id = a.social_account_id
                    and r.reserve_time >= a.day_start and r.reserve_time < a.day_end
            ) as reserved from account_action a where a.action = 'POST'
        """)
        assert all(row.used == row.reserved for row in rows), rows
        return {row.social_account_id: row.used for row in rows}


@asynccontextmanager
async def crowd(url: str, zone: str, start: datetime, seed: int) -> AsyncIterator[Crowd]:
    clock = FrozenDatabaseClock(start)
    async with AsyncExitStack() as exits:
        provider = Provider()
        replicas = [Replica(url, clock=clock, adapter=provider, policy=PATIENT) for _ in range(PROCESSES)]
        for replica in replicas:
            exits.push_async_callback(replica.database.dispose)
        outbox = Outbox(Uuid7Source(), lambda rows: None)
        wakes = [
            WakeParked(database=each.database, clock=clock, outbox=outbox, wake_lines=lambda: None) for each in replicas
        ]
        first = replicas[0]
        for number, (account, cap) in enumerate(CAPS.items()):
            await first.connect(account)
            await first.write(_CAP, account=account, cap=cap)
            await first.write(_LIMITED, account=account)
            await first.write(_SCHEDULE, account=account, zone=zone)
            names = [f"{number}-{post}" for post in range(POSTS)]
            await _save(first, names, account)
        yield Crowd(replicas, wakes, clock, ZoneInfo(zone), random.Random(seed), provider)


async def _save(replica: Replica, names: list[str], account: str) -> None:
    await replica.save(*(a_draft(name, account) for name in names))
    await replica.claim([a_command(name, account) for name in names])


@pytest.mark.parametrize(
    ("zone", "midnight"),
    [
        # The clocks go back at three: the day has 25 hours.
        ("Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC)),
        # There is no midnight: the day begins at one.
        ("America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),
    ],
)
async def test_caps_are_exact_with_fifty_senders_over_a_midnight(
    database_url: str, zone: str, midnight: datetime
) -> None:
    async with crowd(database_url, zone, midnight - timedelta(hours=9), seed=1) as sending:
        # What is of unknown outcome counts, and is proven absent, if it is, on the next day only.
        await sending.until_used_up()
        # The day ends while all are sending: the clock moves on with each transaction.
        sending.clock.moment, sending.clock.tick = midnight - timedelta(seconds=10), timedelta(milliseconds=100)
        await sending.send()
        assert sending.clock.moment > midnight
        sending.clock.tick, sending.looks = timedelta(0), True
        await sending.until_used_up()
        days = {day for _, day in sending.effects}
        assert len(days) == 2
        published = await sending.replicas[0].rows("select external_id from post_job where state = 'PUBLISHED'")
        assert len(published) > sum(CAPS.values())
