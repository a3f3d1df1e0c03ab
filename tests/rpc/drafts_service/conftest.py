from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta

import grpc
import pytest

from drafts_service.adapters.publisher_client import AccountClient, ChannelClient, MediaClient, PublisherClient
from drafts_service.application.known_rules import KnownRules
from drafts_service.main import servicer
from postflow.drafts.v1.draft_targets_service_pb2_grpc import add_DraftTargetsServiceServicer_to_server
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub, add_DraftsServiceServicer_to_server
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, open_channel


@pytest.fixture
def publisher_port(free_port: Callable[[], int]) -> int:
    """The port at which the server under test calls Publisher; nothing listens there unless a test starts it."""
    return free_port()


@pytest.fixture
async def to_publisher(publisher_port: int) -> AsyncIterator[PublisherClient]:
    async with open_channel(f"127.0.0.1:{publisher_port}") as channel:
        yield PublisherClient(channel, deadline=timedelta(seconds=3))


@pytest.fixture
async def directory(publisher_port: int) -> AsyncIterator[AccountClient]:
    async with open_channel(f"127.0.0.1:{publisher_port}") as channel:
        yield AccountClient(channel, deadline=timedelta(seconds=0.5))


@pytest.fixture
async def rule_source(publisher_port: int) -> AsyncIterator[ChannelClient]:
    async with open_channel(f"127.0.0.1:{publisher_port}") as channel:
        yield ChannelClient(channel, deadline=timedelta(seconds=0.5))


@pytest.fixture
async def media(publisher_port: int) -> AsyncIterator[MediaClient]:
    async with open_channel(f"127.0.0.1:{publisher_port}") as channel:
        yield MediaClient(channel, deadline=timedelta(seconds=0.5))


@pytest.fixture
async def channel(
    database: Database,
    to_publisher: PublisherClient,
    directory: AccountClient,
    rule_source: ChannelClient,
    media: MediaClient,
) -> AsyncIterator[grpc.aio.Channel]:
    """A plain channel, without retries, to a drafts server."""
    ids = Uuid7Source()
    async with AsyncExitStack() as stack:
        drafts = servicer(
            database,
            ids=ids,
            outbox=Outbox(ids, lambda rows: None),
            publisher=to_publisher,
            directory=directory,
            rules=KnownRules(rule_source, SystemClock()),
            media=media,
        )
        server = RpcServer(
            listen="127.0.0.1:0",
            servicers=[
                (add_DraftsServiceServicer_to_server, drafts),
                (add_DraftTargetsServiceServicer_to_server, drafts),
            ],
            ids=ids,
        )
        await server.start()
        stack.push_async_callback(server.stop, 0.0)
        yield await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{server.port}"))


@pytest.fixture
def drafts(channel: grpc.aio.Channel) -> DraftsServiceStub:
    return DraftsServiceStub(channel)
