"""Publisher processes that refresh credentials at the sandbox, for tests that take each step themselves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.refresh_due import RefreshDue, Taken
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.account import Connection, SocialAccount
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import Lifetime
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.replica import Replica

# Long enough for a loaded machine: an answer that comes too late is one that was lost.
LIMITS = Limits(request_timeout=timedelta(seconds=4))
HOUR = timedelta(hours=1)


@dataclass
class Renewing:
    """A process. Several of them may share a database."""

    replica: Replica
    sandbox: SandboxClient
    providers: Providers
    refresh: RefreshDue
    connect_account: ConnectAccount
    opened: list[None]

    async def connect(
        self,
        account: str,
        pair: dict[str, Any] | None = None,
        *,
        organization: str = "acme",
        expires: timedelta | None = HOUR,
        refresh_expires: timedelta | None = None,
        access: str = "sandbox-ok",
        **fields: Any,
    ) -> SocialAccount:
        """Connects an account with a pair of the sandbox, or else with an access token that nothing can refresh."""
        now = SystemClock().now()
        wanted = Connection(
            organization_id=organization,
            account_id=account,
            provider="sandbox",
            external_account_id=fields.pop("external", f"ext-{account}"),
            display_name="",
            channels=(),
            credentials=Credentials(
                access_token=pair["access_token"] if pair else access,
                refresh_token=pair.get("refresh_token", "") if pair else "",
            ),
            lifetime=Lifetime(
                expire_time=None if expires is None else now + expires,
                refresh_expire_time=None if refresh_expires is None else now + refresh_expires,
            ),
            **fields,
        )
        connected: SocialAccount = await self.connect_account(
            call("ConnectAccount", organization_id=organization), wanted
        )
        return connected

    async def issue(self, account: str, *, seconds: float = 3600, **terms: object) -> dict[str, Any]:
        return await self.sandbox.issue_token(f"ext-{account}", seconds=seconds, **terms)

    async def make_due(self, *accounts: str) -> None:
        for account in accounts:
            await self.replica.write(
                "update credential set refresh_time = now(), next_time = now() where social_account_id = :id",
                id=account,
            )

    async def move(self, account: str, **columns: timedelta) -> None:
        """Lets the times of an account's credentials come so much earlier."""
        changes = ", ".join(f"{name} = {name} - cast(:{name} as interval)" for name in columns)
        statement = f"update credential set {changes} where social_account_id = :id"  # noqa: S608
        await self.replica.write(statement, id=account, **columns)

    async def take(self, room: int = 100) -> Sequence[Taken]:
        taken, _ = await self.refresh.take(self.providers["sandbox"], room)
        return taken

    async def run(self) -> int:
        """Does what is due. Returns of how many accounts."""
        done = 0
        while taken := await self.take():
            for each in taken:
                await self.refresh(each)
            done += len(taken)
        return done

    async def row(self, account: str) -> Any:
        """Returns the account with what is known of its credentials."""
        (row,) = await self.replica.rows(
            "select s.state as account_state, s.state_reason, s.error_message, s.version, s.credentials, g.connected,"
            " c.* from social_account s join credential c on (c.organization_id, c.social_account_id)"
            " = (s.organization_id, s.id) join account_gate g on (g.organization_id, g.social_account_id)"
            " = (s.organization_id, s.id) where s.id = :id",
            id=account,
        )
        return row

    async def credentials(self, account: str) -> Credentials:
        row = await self.row(account)
        return self.replica.vault.open(row.credentials, organization_id=row.organization_id, account_id=account)

    async def journal(self, account: str) -> list[tuple[int, str]]:
        rows = await self.replica.rows(
            "select generation, state from credential_refresh where social_account_id = :id order by number", id=account
        )
        return [(row.generation, row.state) for row in rows]

    def presented(self, account: str) -> list[tuple[str, str]]:
        """Returns the refresh tokens of the account that the sandbox has seen, and how each request ended."""
        return [
            (line["idempotency_key"], line["outcome"])
            for line in self.sandbox.ledger()
            if line["kind"] == "request" and line["operation"] == "token" and line["account"] == f"ext-{account}"
        ]

    async def notices(self) -> list[publisher_events_pb2.SocialAccountExpiresSoon]:
        return [
            publisher_events_pb2.SocialAccountExpiresSoon.FromString(event.payload)
            for row in await self.replica.rows("select payload from outbox order by position")
            for event in bus_pb2.Envelope.FromString(row.payload).events
            if event.type == publisher_events_pb2.SocialAccountExpiresSoon.DESCRIPTOR.full_name
        ]

    async def now(self) -> datetime:
        (row,) = await self.replica.rows("select clock_timestamp() as now")
        moment: datetime = row.now
        return moment


@asynccontextmanager
async def renewing(url: str, sandbox: Sandbox, *, process: str = "one") -> AsyncIterator[Renewing]:
    async with AsyncExitStack() as stack:
        origin = HttpOrigin(sandbox.url, connections=32)
        stack.push_async_callback(origin.close)
        adapter, system = SandboxAdapter(origin, LIMITS), SystemClock()
        replica = Replica(url, adapter=adapter)
        stack.push_async_callback(replica.database.dispose)
        providers, outbox, ids = Providers([adapter], system), Outbox(Uuid7Source(), lambda rows: None), Uuid7Source()
        opened: list[None] = []
        storing = StoringAccount(
            database=replica.database,
            ids=ids,
            outbox=outbox,
            vault=replica.vault,
            providers=providers,
            on_connected=lambda: None,
        )
        yield Renewing(
            replica=replica,
            sandbox=SandboxClient(sandbox.url, sandbox.path),
            providers=providers,
            refresh=RefreshDue(
                database=replica.database,
                clock=replica.clock,
                system=system,
                outbox=outbox,
                providers=providers,
                vault=replica.vault,
                process=process,
                on_opened=lambda: opened.append(None),
            ),
            connect_account=ConnectAccount(
                database=replica.database, ledger=RequestLedger(replica.database, replica.clock), storing=storing
            ),
            opened=opened,
        )
