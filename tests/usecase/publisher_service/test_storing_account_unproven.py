"""Accounts whose owner nothing proves: the first organization keeps them, and no other hears that they exist."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.unipile import DISCONNECTED, KEY, LINKEDIN, MAILBOX, Unipile
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.account import Connection, SocialAccount
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import Lifetime
from servicekit.clock import SystemClock
from servicekit.faults import Fault, Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.run.settings import Secret
from testkit.calls import call
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.replica import Replica


@dataclass
class Office:
    """A process whose deployment has accounts of several organizations at Unipile."""

    network: Unipile
    replica: Replica
    connect_account: ConnectAccount

    async def connect(
        self, organization: str, external: str = MAILBOX, *, account: str = "page", ago: timedelta | None = None
    ) -> SocialAccount:
        wanted = Connection(
            organization_id=organization,
            account_id=account,
            provider="unipile",
            external_account_id=external,
            display_name="",
            channels=(),
            credentials=Credentials(access_token="anything"),
            lifetime=Lifetime(expire_time=None if ago is None else SystemClock().now() - ago),
        )
        connected: SocialAccount = await self.connect_account(
            call("ConnectAccount", organization_id=organization), wanted
        )
        return connected

    async def refusal(self, organization: str, external: str = MAILBOX, *, ago: timedelta | None = None) -> Fault:
        with pytest.raises(Fault) as refused:
            await self.connect(organization, external, ago=ago)
        return refused.value


@pytest.fixture
async def office(database_url: str, tmp_path: Path) -> AsyncIterator[Office]:
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(Unipile())
        origin = HttpOrigin(network.url, connections=8)
        stack.push_async_callback(origin.close)
        limits = Limits(request_timeout=timedelta(seconds=5))
        adapter = UnipileAdapter(origin, limits, api_key=Secret(KEY), media=MediaFolder(tmp_path))
        replica = Replica(database_url)
        stack.push_async_callback(replica.database.dispose)
        storing = StoringAccount(
            database=replica.database,
            ids=Uuid7Source(),
            outbox=Outbox(Uuid7Source(), lambda rows: None),
            vault=replica.vault,
            providers=Providers([adapter], SystemClock()),
            on_connected=lambda: None,
        )
        ledger = RequestLedger(replica.database, replica.clock)
        connect = ConnectAccount(database=replica.database, ledger=ledger, storing=storing)
        yield Office(network, replica, connect)


async def test_an_account_of_another_organization_is_refused_like_an_unknown_one(office: Office) -> None:
    await office.connect("acme")
    unknown = await office.refusal("other", "acc-nobodys-1")
    assert isinstance(unknown, Refused)
    assert unknown.reason == "CREDENTIALS_REFUSED"
    seen = [await office.refusal("other"), await office.refusal("other", ago=timedelta(days=1))]
    office.network.accounts[MAILBOX] = "STOPPED"
    seen.append(await office.refusal("other"))
    await disconnect(office.replica, "page")
    office.network.accounts[MAILBOX] = "OK"
    seen.append(await office.refusal("other"))
    for each in seen:
        assert (type(each), each.reason, str(each), each.metadata) == (
            type(unknown),
            unknown.reason,
            str(unknown),
            unknown.metadata,
        )
    rows = await office.replica.rows(
        "select organization_id from social_account union select organization_id from account_gate"
    )
    assert [row.organization_id for row in rows] == ["acme"]


async def test_its_organization_connects_it_again_and_hears_what_is_wrong(office: Office) -> None:
    await office.connect("acme")
    await office.connect("other", LINKEDIN)
    assert "CREDENTIALS" in str(await office.refusal("acme", DISCONNECTED))
    await disconnect(office.replica, "page")
    assert (await office.connect("acme")).version == 3


async def test_of_organizations_that_connect_it_together_one_gets_it(office: Office) -> None:
    async def connect(number: int) -> str:
        try:
            await office.connect(f"org-{number}")
        except Refused as refused:
            return refused.reason
        return "connected"

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(connect(number)) for number in range(8)]
    assert sorted(each.result() for each in calls) == ["CREDENTIALS_REFUSED"] * 7 + ["connected"]
