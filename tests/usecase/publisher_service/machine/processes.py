"""Two publishers on one database, at one time and with one provider, which serve one world after another."""

import itertools
from datetime import datetime

from channels import Action
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.disconnect_account import DisconnectAccount
from publisher_service.application.follow_schedules import FollowSchedules
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.release_destinations import ReleaseDestinations
from publisher_service.application.update_account import UpdateAccount
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.account import AccountChange, Disconnection, SocialAccount
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.claim import Claimed
from publisher_service.domain.destination import Destination, DestinationChange, DestinationState
from publisher_service.domain.limits import DEFAULTS
from publisher_service.domain.post_job import Reason, Target
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.machine.provider import ScriptedProvider
from tests.usecase.publisher_service.machine.scene import BEGINNING, LEASE, ORG, POLICY
from tests.usecase.publisher_service.replica import Replica


class CountingClock(SystemClock):
    """Counts the looks at it, so that what was read before is never fresh."""

    def __init__(self) -> None:
        self._looks = itertools.count(1)

    def monotonic(self) -> float:
        return float(next(self._looks))


class Process(Replica):
    """A publisher with all that the machine does besides sending."""

    def __init__(self, url: str, clock: FrozenDatabaseClock, provider: ScriptedProvider) -> None:
        super().__init__(url, lease=LEASE, clock=clock, adapter=provider, policy=POLICY, draw=lambda: 0.5)
        self._counting = CountingClock()
        self._holds = HoldCheck(database=self.database, clock=self._counting)
        ledger, outbox = RequestLedger(self.database, clock), Outbox(Uuid7Source(), lambda rows: None)
        self._update_account = UpdateAccount(
            ledger=ledger,
            outbox=outbox,
            providers=Providers([provider], self.system),
            defaults=DEFAULTS,
            on_caps_changed=_nothing,
        )
        self._disconnect = DisconnectAccount(ledger=ledger, outbox=outbox, vault=self.vault, on_changed=_nothing)
        self._update_destination = UpdateDestination(ledger=ledger, on_activated=_nothing)
        self._follow = FollowSchedules(_nothing)
        self.release_destinations = ReleaseDestinations(
            database=self.database, clock=clock, outbox=outbox, wake_lines=_nothing
        )
        self.wake_parked = WakeParked(database=self.database, clock=clock, outbox=outbox, wake_lines=_nothing)

    async def set_cap(self, account: str, cap: int | None) -> SocialAccount:
        caps = {} if cap is None else {Action.POST: cap}
        change = AccountChange(organization_id=ORG, account_id=account, daily_caps=caps)
        updated: SocialAccount = await self._update_account(call("UpdateAccount"), change)
        return updated

    async def disconnect(self, account: str) -> Disconnection:
        gone: Disconnection = await self._disconnect(call("DisconnectAccount"), account, "")
        return gone

    async def switch(self, target: Target, state: DestinationState) -> Destination:
        change = DestinationChange(organization_id=ORG, target=target, state=state)
        switched: Destination = await self._update_destination(call("UpdateDestination"), change)
        return switched

    async def follow(self, schedule: AccountSchedule, *, now: datetime) -> None:
        await self.database.run(lambda tx: self._follow(tx, [schedule], now))

    def claim_begins(self) -> float:
        return self._counting.monotonic()

    async def stops(self, claimed: Claimed, *, claim_began: float) -> Reason | None:
        """Takes the last look before a request."""
        return await self._holds.reason(claimed, claim_started=claim_began)

    def token_of(self, claimed: Claimed) -> int:
        """Returns the number of the token of a claim; 0 if it was erased."""
        return self.token_in(claimed.credentials, claimed.job.target.social_account_id)

    def token_in(self, credentials: bytes, account: str) -> int:
        token = self.vault.open(credentials, organization_id=ORG, account_id=account)
        return int(token.access_token.rpartition("-")[2] or 0)


class Processes:
    def __init__(self, url: str) -> None:
        self.clock = FrozenDatabaseClock(BEGINNING)
        self.provider = ScriptedProvider()
        self.both = tuple(Process(url, self.clock, self.provider) for _ in range(2))

    async def close(self) -> None:
        for process in self.both:
            await process.database.dispose()


def _nothing() -> None:
    pass
