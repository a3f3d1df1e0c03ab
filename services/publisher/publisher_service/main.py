"""Composition root of a publisher process."""

import asyncio
import sys
from functools import partial

import aiohttp
from nats.aio.client import Client

from postflow.publisher.v1.publisher_service_pb2_grpc import add_PublisherServiceServicer_to_server
from postflow.publisher.v1.social_account_service_pb2_grpc import add_SocialAccountServiceServicer_to_server
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.vault import Vault, read_keys
from publisher_service.application import post_log
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import SendPost
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.tell_started import TellStarted
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.policy import Policy
from publisher_service.engine.commands import CONSUMER as COMMANDS
from publisher_service.engine.commands import CommandIntake
from publisher_service.engine.lanes import ProviderLane
from publisher_service.engine.look_ups import LookUps
from publisher_service.engine.pipeline import PublishPipeline
from publisher_service.engine.redrive import CommandRedriver
from publisher_service.engine.sweep import Sweep
from publisher_service.engine.wake_up import WakeUp
from publisher_service.entrypoints.events import CONSUMER, routes
from publisher_service.entrypoints.loops import loops
from publisher_service.entrypoints.rpc import PublisherServicer, SocialAccountServicer
from publisher_service.settings import Settings
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ensure_stream
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Patience
from servicekit.messaging.relay import Relay
from servicekit.ops import Operations, operations_servicer
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer
from servicekit.run import Process, run_main
from topology import publish_consumers

MIGRATIONS = "publisher_service.adapters.postgres.migrations"


def main() -> int:
    return run_main("publisher", Settings, compose)


async def compose(settings: Settings) -> Process:
    post_log.set_level(settings.outcome_log_level)
    parts = _Parts(settings)
    nats = parts.nats
    jetstream = nats.jetstream()
    return Process(
        name="publisher",
        server=parts.server(),
        starters={
            "database": partial(migrations.check, parts.database, MIGRATIONS),
            "clock": partial(parts.steady.start, parts.clock, parts.database),
            "nats": partial(connect, nats, settings.nats_url, name="publisher"),
            "events stream": partial(ensure_stream, jetstream, settings.events_stream),
            "publish stream": partial(ensure_stream, jetstream, settings.publish_stream),
        },
        consumers=[parts.pipeline, parts.events],
        loops=[
            parts.relay,
            parts.look_ups,
            *loops(
                sweep=parts.sweep,
                sweep_period=settings.sweep_period,
                due_now=parts.due_now,
                relabel_lines=parts.relabel,
                connection_changed=parts.connection_changed,
                wake_stranded_lines=parts.wake_stranded,
                count_jobs=CountJobs(parts.database, parts.clock),
                reseal_credentials=parts.reseal,
                drop_kept_content=parts.drop_kept,
                housekeeping=parts.housekeeping,
            ),
        ],
        closers={
            "outbox relay": parts.relay.flush,
            "providers": parts.http.close,
            "nats": partial(close, nats),
            "database": parts.database.dispose,
        },
        grace=settings.grace,
    )


class _Parts:
    """Everything that a publisher process is made of, wired once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.system, self.clock, self.ids = SystemClock(), DatabaseClock(), Uuid7Source()
        self.steady = SteadyClock(self.system)
        self.database = Database(
            settings.database_url.reveal(), application="publisher", pool_size=settings.database_connections
        )
        self.nats = Client()
        jetstream = self.nats.jetstream()
        self.relay = Relay(
            database=self.database,
            clock=self.clock,
            publisher=PipelinedPublisher(self.nats),
            stream=StreamView(jetstream, settings.events_stream),
            connections=lambda: self.nats.stats["reconnects"],
        )
        self.outbox = Outbox(self.ids, self.relay.offer)
        self.vault = Vault(read_keys(settings.credentials_key, settings.credentials_keys_file))
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.senders * 2), cookie_jar=aiohttp.DummyCookieJar()
        )
        self.providers = Providers([SandboxAdapter(self.http, settings.sandbox_url, settings.limits)], self.system)
        self.late = LateEvidence(self.outbox)
        self.reseal = ResealCredentials(self.database, self.vault)
        self.drop_kept = DropKeptContent(self.database)
        self.due_now, self.connection_changed = asyncio.Event(), asyncio.Event()
        self.dead_letters = DeadLetters(self.database, self.clock, self.ids)
        self.housekeeping = Housekeeping(self.database, self.clock, Retention())
        self.wake_up = WakeUp()
        self.pipeline = self._pipeline()
        self.events = EventConsumer(
            connection=self.nats,
            spec=CONSUMER,
            routes=routes(SaveDrafts(self.outbox, self.due_now.set), TakeSlots(self.outbox)),
            database=self.database,
            clock=self.clock,
            dead_letters=self.dead_letters,
            ensure_stream=partial(ensure_stream, jetstream, settings.events_stream),
            patience=Patience(give_up_after=settings.park_poison_after),
        )
        self.relabel = RelabelLines(database=self.database, clock=self.clock, outbox=self.outbox)
        self.wake_stranded = WakeStrandedLines(database=self.database, clock=self.clock)
        self.look_ups = self._look_ups()
        self.sweep = self._sweep()

    def server(self) -> RpcServer:
        ledger = RequestLedger(self.database, self.clock)
        connect_account = ConnectAccount(
            database=self.database,
            ids=self.ids,
            ledger=ledger,
            outbox=self.outbox,
            vault=self.vault,
            providers=self.providers,
            on_connected=self._on_connected,
        )
        publisher = PublisherServicer(
            read=ReadJobs(self.database),
            withdraw=WithdrawContent(self.database),
            resolve=ResolvePostJob(ledger=ledger, outbox=self.outbox),
        )
        accounts = SocialAccountServicer(connect=connect_account, read=ReadAccounts(self.database))
        return RpcServer(
            listen=self.settings.listen,
            servicers=[
                (add_PublisherServiceServicer_to_server, publisher),
                operations_servicer(self.operations()),
                (add_SocialAccountServiceServicer_to_server, accounts),
            ],
            ids=self.ids,
        )

    def operations(self) -> Operations:
        return Operations(
            service="publisher",
            migrations=MIGRATIONS,
            database=self.database,
            clock=self.clock,
            system=self.system,
            dead_letters=self.dead_letters,
            consumers=[self.events.applier],
            numbers=CountJobs(self.database, self.clock).numbers,
            redrivers={COMMANDS: CommandRedriver(PipelinedPublisher(self.nats), self.dead_letters)},
        )

    def _pipeline(self) -> PublishPipeline:
        settings = self.settings
        return PublishPipeline(
            intake=self._intake(),
            wake_up=self.wake_up,
            claim=ClaimJobs(
                database=self.database,
                clock=self.clock,
                steady=self.steady,
                outbox=self.outbox,
                instance=self.ids.new(),
            ),
            disown=DisownClaims(database=self.database, clock=self.clock, outbox=self.outbox, policy=settings.policy),
            send=SendPost(
                providers=self.providers,
                vault=self.vault,
                clock=self.system,
                steady=self.steady,
                lease_margin=settings.lease_margin,
            ),
            settle=SettlePosts(
                database=self.database,
                clock=self.clock,
                ids=self.ids,
                outbox=self.outbox,
                policies=self._policy_of,
                late=self.late,
                providers=self.providers.names,
                wake_lines=self.wake_up.wake_lines,
            ),
            tell_started=TellStarted(database=self.database, clock=self.clock, outbox=self.outbox),
            clock=self.system,
            steady=self.steady,
            lanes={
                provider.name: ProviderLane(
                    provider.name,
                    senders=provider.limits.senders,
                    lease=provider.limits.request_timeout + settings.lease_margin,
                )
                for provider in self.providers
            },
        )

    def _intake(self) -> CommandIntake:
        return CommandIntake(
            connection=self.nats,
            stream=self.settings.publish_stream,
            specs=publish_consumers(self.settings.publish_durables),
            clock=self.system,
            steady=self.steady,
            dead_letters=self.dead_letters,
        )

    def _on_connected(self) -> None:
        self.wake_up.wake_lines()
        self.connection_changed.set()

    def _policy_of(self, name: str) -> Policy:
        """What the provider declares, over what is set for all; a provider of another release has only the latter."""
        provider = self.providers.get(name)
        return self.settings.policy if provider is None else provider.policy(self.settings.policy)

    def _lookers(self, name: str) -> int:
        provider = self.providers.get(name)
        return self.settings.limits.lookers if provider is None else provider.limits.lookers

    def _look_ups(self) -> LookUps:
        resolve = ResolveUnknown(
            database=self.database,
            clock=self.clock,
            outbox=self.outbox,
            providers=self.providers,
            vault=self.vault,
            policies=self._policy_of,
            late=self.late,
        )
        return LookUps(resolve, self._lookers)

    def _sweep(self) -> Sweep:
        recover = RecoverJobs(
            database=self.database,
            clock=self.clock,
            steady=self.steady,
            outbox=self.outbox,
            policies=self._policy_of,
        )
        return Sweep(recover, self.look_ups.add, self.pipeline.submit_commands)


if __name__ == "__main__":
    sys.exit(main())
