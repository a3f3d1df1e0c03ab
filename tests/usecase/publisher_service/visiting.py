"""Visits to the sandbox by which accounts are connected, for tests that take each step themselves."""

from dataclasses import dataclass, field
from typing import Any

from publisher_service.application.finish_connect import FinishConnect
from publisher_service.application.start_connect import StartConnect
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.connecting import FinishedSession, Return, StartedSession, WantedSession
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.renewing import Renewing

BACK = "https://app.example.com/connected"


@dataclass
class Visiting:
    """A process at which visits begin and end."""

    office: Renewing
    start_connect: StartConnect = field(init=False)
    finish_connect: FinishConnect = field(init=False)

    def __post_init__(self) -> None:
        replica = self.office.replica
        ledger = RequestLedger(replica.database, replica.clock)
        storing = StoringAccount(
            database=replica.database,
            ids=Uuid7Source(),
            outbox=Outbox(Uuid7Source(), lambda rows: None),
            vault=replica.vault,
            providers=self.office.providers,
            on_connected=lambda: None,
        )
        self.start_connect = StartConnect(
            database=replica.database, ledger=ledger, vault=replica.vault, storing=storing, redirect_uris=[BACK]
        )
        self.finish_connect = FinishConnect(
            database=replica.database, clock=replica.clock, ledger=ledger, vault=replica.vault, storing=storing
        )

    async def start(
        self, *, organization: str = "acme", account: str = "", request_id: str = "", **fields: Any
    ) -> StartedSession:
        wanted = {
            "provider": "sandbox",
            "redirect_uri": BACK,
            "display_name": "",
            "channels": (),
            "settings": {},
            **fields,
        }
        session = WantedSession(organization_id=organization, account_id=account, **wanted)
        named = call("StartConnect", organization_id=organization, request_id=request_id)
        started: StartedSession = await self.start_connect(named, session)
        return started

    async def agree(self, started: StartedSession, *accounts: str, **choices: object) -> str:
        """Returns the code with which a person comes back."""
        back = await self.office.sandbox.agree(started.authorization_url, *accounts, **choices)
        assert back["state"] == started.state
        return back["code"]

    async def finish(
        self,
        started: StartedSession,
        code: str,
        *,
        name: str = "",
        organization: str = "acme",
        request_id: str = "",
    ) -> FinishedSession:
        back = Return(state=started.state, code=code, external_account_id=name)
        named = call("FinishConnect", organization_id=organization, request_id=request_id, digest=name.encode())
        finished: FinishedSession = await self.finish_connect(named, back)
        return finished

    def exchanges(self) -> list[str]:
        """Returns the codes that the sandbox has seen, one for each request."""
        return [
            line["idempotency_key"]
            for line in self.office.sandbox.ledger()
            if line["kind"] == "request" and str(line["idempotency_key"]).startswith("sandbox-code-")
        ]

    async def sessions(self) -> list[Any]:
        return await self.office.replica.rows("select * from connect_session order by expire_time")
