from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from nats.aio.client import Client

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from postflow.publisher.v1.publisher_admin_service_pb2_grpc import (
    PublisherAdminServiceStub,
    add_PublisherAdminServiceServicer_to_server,
)
from postflow.publisher.v1.publisher_service_pb2_grpc import (
    PublisherServiceStub,
    add_PublisherServiceServicer_to_server,
)
from postflow.publisher.v1.social_account_service_pb2_grpc import (
    SocialAccountServiceStub,
    add_SocialAccountServiceServicer_to_server,
)
from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.vault import Vault
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.disconnect_account import DisconnectAccount
from publisher_service.application.explain_post_job import ExplainPostJob
from publisher_service.application.finish_connect import FinishConnect
from publisher_service.application.inspect_media import InspectMedia
from publisher_service.application.leave_safe_mode import LeaveSafeMode
from publisher_service.application.marks import Marks
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.put_hold import PutHold
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_activity import ReadActivity
from publisher_service.application.read_destinations import ReadDestinations
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.read_safe_mode import ReadSafeMode
from publisher_service.application.refresh_credentials import RefreshCredentials
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.replay_post_jobs import ReplayPostJobs
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.retry_post_job import RetryPostJob
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.start_connect import StartConnect
from publisher_service.application.storing_account import StoringAccount
from publisher_service.application.update_account import UpdateAccount
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.application.validate_content import ValidateContent
from publisher_service.application.watch_post_jobs import WatchPostJobs
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.claim import Lane
from publisher_service.domain.limits import DEFAULTS
from publisher_service.entrypoints.admin_rpc import PublisherAdminServicer
from publisher_service.entrypoints.rpc import DEADLINES, SIZES, PublisherServicer, SocialAccountServicer
from servicekit.bus.feed import Feed
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer
from servicekit.run.settings import Secret
from tests.contract.publisher_service.media_rig import MediaRig, media_rig

# A feed of no server: watches are tested on a whole process.
UNHEARD = Feed(Client(), stream="EVENTS", subjects=(), decode=lambda payload, organizations: (), most=1)
REDIRECT_URI = "https://app.example.com/connected"
KEY = Secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxClient:
    return SandboxClient(sandbox.url, sandbox.path)


class Site:
    """The use cases of a publisher server on one database and one provider; nothing else is awake."""

    def __init__(self, database: Database, origin: HttpOrigin, files: MediaFiles) -> None:
        self.ids = Uuid7Source()
        self._database, self._clock = database, DatabaseClock()
        self._ledger, self._outbox = RequestLedger(database, self._clock), Outbox(self.ids, lambda rows: None)
        self._vault = Vault([("test", KEY)])
        life = timedelta(minutes=15)
        self.inspect_media = InspectMedia(database=database, clock=self._clock, files=files, life=life)
        limits = Limits(request_timeout=timedelta(milliseconds=500))
        self._providers = Providers([SandboxAdapter(origin, limits)], SystemClock())

    def posts(self) -> PublisherServicer:
        database, ledger, outbox = self._database, self._ledger, self._outbox
        lanes = [Lane(provider="sandbox", room=1, lease=timedelta(seconds=15))]
        return PublisherServicer(
            cancel=CancelPostJobs(ledger=ledger, outbox=outbox),
            list_destinations=ReadDestinations(database),
            explain=ExplainPostJob(
                database=database, clock=self._clock, vault=self._vault, lanes=lambda: lanes, marks=Marks("test")
            ),
            inspect_media=self.inspect_media,
            list_holds=ReadHolds(database),
            publish_now=PublishNow(
                ledger=ledger,
                outbox=outbox,
                save_drafts=SaveDrafts(outbox, lambda: None),
                wake_sweep=lambda: None,
            ),
            put_hold=PutHold(ledger=ledger, providers=("elsewhere", "sandbox"), on_changed=lambda: None),
            read=ReadJobs(database),
            release_hold=ReleaseHold(ledger=ledger, on_released=lambda: None),
            resolve=ResolvePostJob(ledger=ledger, outbox=outbox),
            retry=RetryPostJob(ledger=ledger, outbox=outbox, rules=self._providers.rules, wake_sweep=lambda: None),
            update_destination=UpdateDestination(ledger=ledger, on_activated=lambda: None),
            validate=ValidateContent(database=database, rules=self._providers.rules),
            channels=[(each.name, each.proof, each.rules) for each in self._providers],
            watch=WatchPostJobs(database=database, feed=UNHEARD, most_per_organization=1),
            withdraw=WithdrawContent(database),
        )

    def accounts(self) -> SocialAccountServicer:
        ledger, outbox, vault, providers = self._ledger, self._outbox, self._vault, self._providers
        database, clock, system = self._database, self._clock, SystemClock()
        storing = StoringAccount(
            database=database, ids=self.ids, outbox=outbox, vault=vault, providers=providers, on_connected=lambda: None
        )
        return SocialAccountServicer(
            activity=ReadActivity(self._database, self._clock),
            connect=ConnectAccount(database=database, ledger=ledger, storing=storing),
            start=StartConnect(
                database=database, ledger=ledger, vault=vault, storing=storing, redirect_uris=[REDIRECT_URI]
            ),
            finish=FinishConnect(database=database, clock=clock, ledger=ledger, vault=vault, storing=storing),
            refresh=RefreshCredentials(
                database=database,
                clock=clock,
                system=system,
                ledger=ledger,
                wake=lambda: None,
                patience=timedelta(milliseconds=300),
            ),
            disconnect=DisconnectAccount(ledger=ledger, outbox=outbox, vault=vault, on_changed=lambda: None),
            read=ReadAccounts(self._database),
            update=UpdateAccount(
                ledger=ledger, outbox=outbox, providers=providers, defaults=DEFAULTS, on_caps_changed=lambda: None
            ),
        )

    def admin(self) -> PublisherAdminServicer:
        database, clock, outbox = self._database, self._clock, self._outbox
        return PublisherAdminServicer(
            leave=LeaveSafeMode(
                database=database, clock=clock, ledger=self._ledger, outbox=outbox, wake_lines=lambda: None
            ),
            read=ReadSafeMode(database),
            replay=ReplayPostJobs(database=database, clock=clock, outbox=outbox),
        )


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[MediaRig]:
    """A server of media, which the server under test may reach."""
    async with media_rig(tmp_path) as rig:
        yield rig


@pytest.fixture
async def channel(database: Database, sandbox: Sandbox, rig: MediaRig) -> AsyncIterator[grpc.aio.Channel]:
    """A plain channel to a publisher server, without retries."""
    async with AsyncExitStack() as stack:
        origin = HttpOrigin(sandbox.url, connections=8)
        stack.push_async_callback(origin.close)
        site = Site(database, origin, rig.files)
        stack.push_async_callback(site.inspect_media.close)
        server = RpcServer(
            listen="127.0.0.1:0",
            servicers=[
                (add_PublisherServiceServicer_to_server, site.posts()),
                (add_PublisherAdminServiceServicer_to_server, site.admin()),
                (add_SocialAccountServiceServicer_to_server, site.accounts()),
            ],
            ids=site.ids,
            sizes=SIZES,
            deadlines=DEADLINES,
        )
        await server.start()
        stack.push_async_callback(server.stop, 0.0)
        yield await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{server.port}"))


@pytest.fixture
def publisher(channel: grpc.aio.Channel) -> PublisherServiceStub:
    return PublisherServiceStub(channel)


@pytest.fixture
def admin(channel: grpc.aio.Channel) -> PublisherAdminServiceStub:
    return PublisherAdminServiceStub(channel)


@pytest.fixture
def accounts(channel: grpc.aio.Channel) -> SocialAccountServiceStub:
    return SocialAccountServiceStub(channel)
