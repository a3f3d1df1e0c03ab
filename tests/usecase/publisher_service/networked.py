"""A publisher process at the fakes of Facebook and LinkedIn, all of them by one clock that a test moves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.linkedin_tokens import CLIENT_ID, CLIENT_SECRET
from devstack.networks.meta import APP_ID, APP_SECRET
from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.finish_connect import FinishConnect
from publisher_service.application.refresh_due import RefreshDue
from publisher_service.application.start_connect import StartConnect
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.account import SocialAccount
from publisher_service.domain.connecting import FinishedSession, Return, StartedSession, WantedSession
from publisher_service.domain.credentials import Credentials
from publisher_service.engine.refreshes import Refreshes
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from testkit.clocks import FrozenClock
from testkit.database_clocks import FrozenDatabaseClock
from testkit.eventually import eventually
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.usecase.publisher_service.replica import Replica

BACK = "https://app.example.com/connected"
LIMITS = Limits(request_timeout=timedelta(seconds=5))


@dataclass
class Networked:
    facebook: FacebookNetwork
    linkedin: LinkedIn
    clock: FrozenClock
    database_clock: FrozenDatabaseClock
    replica: Replica
    providers: Providers
    refresh: RefreshDue
    start_connect: StartConnect
    finish_connect: FinishConnect
    due: asyncio.Event

    def pass_time(self, by: timedelta) -> None:
        self.clock.advance(by)
        self.database_clock.moment += by

    @property
    def now(self) -> datetime:
        return self.clock.now()

    async def connect(self, provider: str, account: str, *, external: str = "") -> SocialAccount:
        """Connects an account by a visit of a person who agrees to everything."""
        wanted = WantedSession(
            organization_id="acme",
            provider=provider,
            redirect_uri=BACK,
            account_id=account,
            display_name="",
            channels=(),
            settings={},
        )
        started: StartedSession = await self.start_connect(call("StartConnect", organization_id="acme"), wanted)
        async with aiohttp.request("GET", started.authorization_url, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            back = parse_qs(urlsplit(answer.headers["Location"]).query)
        returned = Return(state=back["state"][0], code=back["code"][0], external_account_id=external)
        finished: FinishedSession = await self.finish_connect(
            call("FinishConnect", organization_id="acme", digest=account.encode()), returned
        )
        assert finished.account is not None
        return finished.account

    async def refreshes(self, until: Callable[[], Awaitable[None]]) -> None:
        """Runs the loop that refreshes credentials, as a process does, until the assertion holds."""
        stop = asyncio.Event()

        async def holds() -> bool:
            await until()
            return True

        async with asyncio.TaskGroup() as group:
            group.create_task(Refreshes(self.refresh, self.due).run(stop))
            try:
                await eventually(holds)
            finally:
                stop.set()

    async def taken(self) -> int:
        """Returns of how many accounts something is due."""
        return sum([len((await self.refresh.take(provider, 100))[0]) for provider in self.providers])

    async def row(self, account: str) -> Any:
        """Returns the account with what is known of its credentials."""
        (row,) = await self.replica.rows(
            "select s.state as account_state, s.state_reason, s.credentials, c.* from social_account s"
            " join credential c on (c.organization_id, c.social_account_id) = (s.organization_id, s.id)"
            " where s.id = :id",
            id=account,
        )
        return row

    async def credentials(self, account: str) -> Credentials:
        row = await self.row(account)
        return self.replica.vault.open(row.credentials, organization_id="acme", account_id=account)

    async def journal(self, account: str) -> list[tuple[int, str]]:
        rows = await self.replica.rows(
            "select generation, state from credential_refresh where social_account_id = :id order by number", id=account
        )
        return [(row.generation, row.state) for row in rows]

    async def notices(self) -> list[tuple[str, datetime]]:
        """Returns the accounts of which it was announced that they expire soon, and when."""
        rows = await self.replica.rows("select payload from outbox order by position")
        events = [event for row in rows for event in bus_pb2.Envelope.FromString(row.payload).events]
        kind = publisher_events_pb2.SocialAccountExpiresSoon
        found = [kind.FromString(each.payload) for each in events if each.type == kind.DESCRIPTOR.full_name]
        return [(each.social_account.id, each.expire_time.ToDatetime(self.now.tzinfo)) for each in found]


@asynccontextmanager
async def networked(url: str, folder: Path) -> AsyncIterator[Networked]:
    clock, database_clock, system = FrozenClock(), FrozenDatabaseClock(), SystemClock()
    async with AsyncExitStack() as stack:
        facebook = await stack.enter_async_context(FacebookNetwork(clock=clock))
        linkedin = await stack.enter_async_context(LinkedIn(clock=clock))
        pages, profiles = HttpOrigin(facebook.url, connections=4), HttpOrigin(linkedin.url, connections=4)
        stack.push_async_callback(pages.close)
        stack.push_async_callback(profiles.close)
        media = MediaFolder(folder)
        meta_app = Application(client_id=APP_ID, client_secret=APP_SECRET)
        app = Application(client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
        page = FacebookAdapter(pages, LIMITS, media=media, app=meta_app, dialog_url=facebook.url)
        profile = LinkedInAdapter(
            profiles, LIMITS, version=VERSION, media=media, clock=clock, app=app, sign_in=profiles
        )
        stack.push_async_callback(profile.close)
        replica = Replica(url, clock=database_clock)
        stack.push_async_callback(replica.database.dispose)
        providers, ids, due = Providers([page, profile], system), Uuid7Source(), asyncio.Event()
        outbox, ledger = Outbox(ids, lambda rows: None), RequestLedger(replica.database, database_clock)
        storing = StoringAccount(
            database=replica.database,
            ids=ids,
            outbox=outbox,
            vault=replica.vault,
            providers=providers,
            on_connected=lambda: None,
        )
        parts = {"database": replica.database, "ledger": ledger, "vault": replica.vault, "storing": storing}
        yield Networked(
            facebook=facebook,
            linkedin=linkedin,
            clock=clock,
            database_clock=database_clock,
            replica=replica,
            providers=providers,
            refresh=RefreshDue(
                database=replica.database,
                clock=database_clock,
                system=system,
                outbox=outbox,
                providers=providers,
                vault=replica.vault,
                process="one",
                on_opened=lambda: None,
            ),
            start_connect=StartConnect(**parts, redirect_uris=[BACK]),  # type: ignore[arg-type]
            finish_connect=FinishConnect(**parts, clock=database_clock),  # type: ignore[arg-type]
            due=due,
        )
        assert facebook.problems == linkedin.problems == []
