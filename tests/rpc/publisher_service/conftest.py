from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import grpc
import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from postflow.publisher.v1.publisher_service_pb2_grpc import (
    PublisherServiceStub,
    add_PublisherServiceServicer_to_server,
)
from postflow.publisher.v1.social_account_service_pb2_grpc import (
    SocialAccountServiceStub,
    add_SocialAccountServiceServicer_to_server,
)
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.vault import Vault
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.put_hold import PutHold
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.entrypoints.rpc import PublisherServicer, SocialAccountServicer
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer
from servicekit.run.settings import Secret

KEY = Secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxClient:
    return SandboxClient(sandbox.url, sandbox.path)


@pytest.fixture
async def channel(database: Database, sandbox: Sandbox) -> AsyncIterator[grpc.aio.Channel]:
    """A plain channel to a publisher server, without retries."""
    ids = Uuid7Source()
    async with AsyncExitStack() as stack:
        origin = HttpOrigin(sandbox.url, connections=8)
        stack.push_async_callback(origin.close)
        limits = Limits(request_timeout=timedelta(milliseconds=500))
        providers = Providers([SandboxAdapter(origin, limits)], SystemClock())
        ledger = RequestLedger(database, DatabaseClock())
        connect = ConnectAccount(
            database=database,
            ids=ids,
            ledger=ledger,
            outbox=Outbox(ids, lambda rows: None),
            vault=Vault([("test", KEY)]),
            providers=providers,
            on_connected=lambda: None,
        )
        publisher = PublisherServicer(
            cancel=CancelPostJobs(ledger=ledger, outbox=Outbox(ids, lambda rows: None)),
            list_holds=ReadHolds(database),
            put_hold=PutHold(ledger=ledger, on_changed=lambda: None),
            read=ReadJobs(database),
            release_hold=ReleaseHold(ledger=ledger, on_released=lambda: None),
            resolve=ResolvePostJob(ledger=ledger, outbox=Outbox(ids, lambda rows: None)),
            withdraw=WithdrawContent(database),
        )
        server = RpcServer(
            listen="127.0.0.1:0",
            servicers=[
                (add_PublisherServiceServicer_to_server, publisher),
                (
                    add_SocialAccountServiceServicer_to_server,
                    SocialAccountServicer(connect=connect, read=ReadAccounts(database)),
                ),
            ],
            ids=ids,
        )
        await server.start()
        stack.push_async_callback(server.stop, 0.0)
        yield await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{server.port}"))


@pytest.fixture
def publisher(channel: grpc.aio.Channel) -> PublisherServiceStub:
    return PublisherServiceStub(channel)


@pytest.fixture
def accounts(channel: grpc.aio.Channel) -> SocialAccountServiceStub:
    return SocialAccountServiceStub(channel)
