"""Outreach of one account, under a clock that a test sets."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, text

from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.application.follow_schedules import FollowSchedules
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Outcome
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import Target
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, an_account, claims_in

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SPACING = timedelta(minutes=6)


class Outreach:
    """A replica whose account `page` sends e-mails, or something else, at times that a test sets."""

    def __init__(self, url: str, *, channel: str = "email", now: datetime = NOON) -> None:
        self.clock = FrozenDatabaseClock(now)
        self.replica = Replica(url, clock=self.clock)
        self.channel = channel
        self.wake = WakeParked(
            database=self.replica.database,
            clock=self.clock,
            outbox=Outbox(Uuid7Source(), lambda rows: None),
            wake_lines=lambda: None,
        )

    @property
    def now(self) -> datetime:
        return self.clock.moment

    async def connect(self, account: str = "page") -> None:
        async with self.replica.database.transaction() as tx:
            sealed = self.replica.vault.seal(
                Credentials(access_token="token"), organization_id="acme", account_id=account
            )
            await insert_account(tx.connection, an_account(account), sealed)
            await tx.connection.execute(
                text("""
                    insert into account_gate (organization_id, social_account_id, provider, connected)
                    values ('acme', :id, 'sandbox', true)
                    on conflict (organization_id, social_account_id) do update set connected = true
                """),
                {"id": account},
            )

    async def save(self, count: int, *, prefix: str = "d", channel: str = "") -> list[Command]:
        """Saves drafts for as many recipients; returns their commands, which are due now."""
        names = [f"{prefix}{number:03}" for number in range(count)]
        drafts = [self._draft(name, channel or self.channel) for name in names]
        await self.replica.save(*drafts, now=self.now)
        return [replace(a_command(draft.draft_id), target=draft.targets[0], schedule_time=self.now) for draft in drafts]

    def _draft(self, name: str, channel: str) -> SavedDraft:
        target = Target(social_account_id="page", channel=channel, destination=f"{name}@example.com")
        return replace(a_draft(name, "page"), targets=(target,))

    async def claim(self, commands: Sequence[Command]) -> list[Claimed]:
        return claims_in(await self.replica.claim(commands))

    async def settle(self, claimed: Claimed, outcome: Outcome | None = None) -> None:
        await self.replica.settle([replace(a_sent(claimed, outcome), time=self.now)])

    async def turns(self) -> list[Claimed]:
        """Takes the turns of the line until nothing more may leave it."""
        found: list[Claimed] = []
        for _ in range(20):
            turns = await self.replica.turns()
            found += [claimed for _, claimed in turns.claimed]
            if not turns.more:
                return found
        raise AssertionError("the line never comes to rest")

    async def pass_time(self, time: timedelta) -> list[Claimed]:
        """Moves the clock on; returns what may be sent then."""
        self.clock.moment += time
        await self.wake.look()
        return await self.turns()

    async def send_all(self, *, until: datetime, step: timedelta = SPACING) -> list[datetime]:
        """Sends all that may go until then; returns when each went."""
        sent: list[datetime] = []
        while self.now < until:
            for claimed in await self.pass_time(step):
                sent.append(self.now)
                await self.settle(claimed)
        return sent

    async def follow(self, **fields: Any) -> None:
        """Announces a schedule of the account; its line is looked at once, whether or not anything waits there."""
        known: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page", "version": 1}
        follow = FollowSchedules(lambda: None)
        schedule = AccountSchedule(**known | fields)
        await self.replica.database.run(lambda tx: follow(tx, [schedule], self.now))
        if not await self.replica.rows("select 1 from post_job"):
            assert await self.turns() == []

    async def used(self, action: str = "EMAIL") -> int:
        rows = await self.replica.rows("select used from account_action where action = :action", action=action)
        counted = await self.replica.rows(
            """
            select count(*) from reservation r join account_action a using (organization_id, social_account_id, action)
            where a.action = :action and r.reserve_time >= a.day_start and r.reserve_time < a.day_end
            """,
            action=action,
        )
        used = rows[0].used if rows else 0
        assert used == counted[0][0], "the count agrees with the reservations"
        return int(used)

    async def job(self, draft: str) -> Row[Any]:
        (row,) = await self.replica.rows("select * from post_job where draft_id = :draft", draft=draft)
        return row

    async def activities(self) -> list[str]:
        rows = await self.replica.rows("select action, outcome, run from activity order by create_time, id")
        return [f"{row.action} {row.outcome} {row.run}" for row in rows]
