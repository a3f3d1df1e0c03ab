"""A replica whose one account is of a provider that prepares posts, and what it says to that provider."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from postflow.drafts.v1 import draft_pb2
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox_container import SandboxContainerAdapter
from publisher_service.application.prepare_ahead import PrepareAhead
from publisher_service.application.prepare_posts import PreparePosts
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.preparation import Preparation, Void
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, claims_in

NOW = timedelta(0)
EXPIRED = Void(reason="CONTAINER_EXPIRED", message="the container has expired")


class Containers:
    """A replica whose one account is of a provider that prepares posts, and what it says to the provider."""

    def __init__(self, replica: Replica, control: SandboxClient, adapter: SandboxContainerAdapter) -> None:
        self.replica = replica
        self.control = control
        self.adapter = adapter
        providers = Providers([adapter], replica.system)
        replica.lanes = [Lane(provider="sandbox-container", room=100, lease=timedelta(seconds=30), prepares=True)]
        (self.provider,) = providers
        self.prepare = PreparePosts(
            database=replica.database,
            clock=replica.clock,
            outbox=Outbox(Uuid7Source(), lambda rows: None),
            providers=providers,
            vault=replica.vault,
            on_ready=lambda: None,
        )
        self.ahead = PrepareAhead(
            database=replica.database, clock=replica.clock, providers=providers, ahead=timedelta(minutes=15)
        )

    async def connect(self, draft: str = "d0") -> None:
        await self.replica.posts(1, account="page")
        await self.replica.write(
            "update social_account set provider = 'sandbox-container', external_account_id = 'ext', credentials = :new",
            new=self.replica.vault.seal(
                Credentials(access_token="sandbox-ok"), organization_id="acme", account_id="page"
            ),
        )
        await self.replica.write("update account_gate set provider = 'sandbox-container'")
        await self.save("one")

    async def save(self, text: str, revision: int = 1) -> None:
        content = draft_pb2.DraftContent(text=text).SerializeToString(deterministic=True)
        draft = replace(
            a_draft("d0", "page", version=revision + 1),
            revision=revision,
            content=content,
            content_digest=hashlib.sha256(content).hexdigest(),
        )
        await self.replica.save(draft)

    def command(self, revision: int = 1, emission: int = 1) -> Command:
        return replace(a_command("d0", "page"), content_revision=revision, emission=emission)

    async def claim(self, revision: int = 1) -> list[Claimed]:
        return claims_in(await self.replica.claim([self.command(revision)]))

    async def take(self) -> Sequence[Preparation]:
        return await self.prepare.take(self.provider, 8)

    async def work(self, times: int = 2) -> None:
        """Lets the provider be asked so many times."""
        for _ in range(times):
            for taken in await self.take():
                await self.prepare(taken)

    async def state(self) -> str:
        (row,) = await self.replica.rows("select * from preparation")
        return str(row.state)

    async def job(self) -> str:
        ((state, _),) = (await self.replica.states()).items()
        return state

    async def send(self, claimed: Claimed) -> None:
        (await self.replica.settle([await self.replica.send(claimed)]))


@asynccontextmanager
async def containers_of(database_url: str, sandbox: Sandbox) -> AsyncIterator[Containers]:
    origin = HttpOrigin(sandbox.url, connections=8)
    limits = Limits(request_timeout=timedelta(seconds=1), check_again=NOW)
    adapter = SandboxContainerAdapter(origin, limits)
    replica = Replica(database_url, adapter=adapter)
    containers = Containers(replica, SandboxClient(sandbox.url, sandbox.path), adapter)
    await containers.connect()
    yield containers
    await replica.database.dispose()
    await origin.close()
