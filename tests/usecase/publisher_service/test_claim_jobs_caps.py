"""Daily caps are exact under many senders at once, over midnight in a night in which the clocks change."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest

from publisher_service.application.claim_jobs import Retry
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.account_schedule import day_of
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.outcome import Accepted, Ambiguous, NotBegun, Outcome, Rejected
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.outreach import Outreach
from tests.usecase.publisher_service.replica import Replica, a_sent, claims_in

TASKS = 50
UNSPACED = LimitDefaults(outreach_spacing=timedelta(0))
# Small, so that both days are used up in some seconds.
CAP = 6


class Senders:
    """Fifty tasks on three replicas that send all they may until the clock has passed the end."""

    def __init__(self, url: str, clock: FrozenDatabaseClock, *, end: datetime) -> None:
        self.clock = clock
        self.end = end
        self.replicas = [Replica(url, clock=clock, limits=UNSPACED) for _ in range(3)]
        self.draw = random.Random(7)
        # A replica has eight connections; here its tasks wait for them in order.
        self.rooms = {id(replica): asyncio.Semaphore(7) for replica in self.replicas}
        self.wakes = [
            WakeParked(
                database=replica.database,
                clock=clock,
                outbox=Outbox(Uuid7Source(), lambda rows: None),
                wake_lines=lambda: None,
                limits=UNSPACED,
            )
            for replica in self.replicas
        ]

    async def run(self, commands: list[Command]) -> None:
        batches = [commands[number::TASKS] for number in range(TASKS)]
        async with asyncio.TaskGroup() as group:
            for number, (batch, replica) in enumerate(zip(batches, cycle(self.replicas), strict=False)):
                group.create_task(self._work(number, replica, batch))

    async def _work(self, number: int, replica: Replica, commands: list[Command]) -> None:
        wake = self.wakes[number % 3]
        room = self.rooms[id(replica)]
        while self.clock.moment < self.end:
            async with room:
                answers = await replica.claim(commands) if commands else []
                claimed = [*claims_in(answers), *await replica.next_in_line()]
            # The stream brings back what another task has locked.
            commands = [each for each, answer in zip(commands, answers, strict=True) if isinstance(answer, Retry)]
            await self._settle(replica, claimed)
            if number < 3:
                async with room:
                    await wake.look()

    async def _settle(self, replica: Replica, claimed: list[Claimed]) -> None:
        for each in claimed:
            async with self.rooms[id(replica)]:
                await replica.settle([a_sent(each, self._outcome(each))])

    def _outcome(self, claimed: Claimed) -> Outcome:
        accepted = Accepted(external_id=f"out-{claimed.job.draft_id}", external_url="")
        outcomes: list[Outcome] = [
            accepted,
            accepted,
            Rejected(reason="REJECTED", message=""),
            Ambiguous(reason="TIMEOUT", message=""),
            NotBegun(reason="STOPPING", message=""),
        ]
        return self.draw.choice(outcomes)


@pytest.mark.parametrize(
    ("zone", "midnight"),
    [
        # The clocks go forward at 02:00, and back at 03:00; in Beirut they skip the midnight itself.
        ("Europe/Berlin", datetime(2026, 3, 28, 23, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 24, 22, tzinfo=UTC)),
        ("Asia/Beirut", datetime(2026, 3, 28, 22, tzinfo=UTC)),
    ],
)
async def test_fifty_senders_over_midnight_use_each_cap_exactly(
    database_url: str, zone: str, midnight: datetime
) -> None:
    outreach = Outreach(database_url, now=midnight - timedelta(minutes=1))
    await outreach.connect()
    await outreach.follow(time_zone=zone)
    await outreach.replica.write(
        "insert into account_action (organization_id, social_account_id, action, cap)"
        " values ('acme', 'page', 'POST', :cap)",
        cap=CAP,
    )
    # Of posts, which are not spaced: the senders never have to wait for each other.
    await outreach.replica.write("update account_gate set limited = true")
    commands = await outreach.save(200, channel="facebook")
    outreach.clock.tick = timedelta(milliseconds=20)
    senders = Senders(database_url, outreach.clock, end=midnight + timedelta(minutes=1))
    await senders.run(commands)
    rows = await outreach.replica.rows(
        """
        select r.reserve_time, a.state from attempt a
        left join reservation r on r.post_job_id = a.post_job_id and r.fence = a.fence
        """
    )
    with_effect = [row for row in rows if row.state in ("SENDING", "UNKNOWN", "ACCEPTED")]
    assert all(row.reserve_time for row in with_effect), "what may have effect has its place"
    assert all(row.reserve_time is None for row in rows if row not in with_effect), "nothing else has one"
    days = [day_of(zone, row.reserve_time).date for row in with_effect]
    assert {day: days.count(day) for day in set(days)} == dict.fromkeys(set(days), CAP)
    assert len(set(days)) == 2
    assert await outreach.used("POST") == CAP
    for replica in [outreach.replica, *senders.replicas]:
        await replica.database.dispose()
