"""Composition root of a drafts process."""

import sys

from nats.aio.client import Client

from drafts_service.adapters.publisher_client import AccountClient, PublisherClient
from drafts_service.application.accounts import Accounts, Directory, KeepAccounts
from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.application.withdrawal import Publisher
from drafts_service.entrypoints.events import CONSUMER, routes
from drafts_service.entrypoints.loops import loops
from drafts_service.entrypoints.rpc import DraftsServicer
from drafts_service.settings import Settings
from postflow.drafts.v1.drafts_service_pb2_grpc import add_DraftsServiceServicer_to_server
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ensure_stream
from servicekit.clock import SystemClock
from servicekit.ids import IdSource, Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Patience
from servicekit.messaging.relay import Relay
from servicekit.ops import Operations, operations_servicer
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.pg.ledger_by_hand import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, open_channel
from servicekit.run import Process, run_main

MIGRATIONS = "drafts_service.adapters.postgres.migrations"


def main() -> int:
    return run_main("drafts", Settings, compose)


async def compose(settings: Settings) -> Process:
    clock, ids = DatabaseClock(), Uuid7Source()
    database = Database(settings.database_url.reveal(), application="drafts", pool_size=settings.database_connections)
    nats = Client()
    jetstream = nats.jetstream()
    relay = Relay(
        database=database,
        clock=clock,
        publisher=PipelinedPublisher(nats),
        stream=StreamView(jetstream, settings.events_stream),
        connections=lambda: nats.stats["reconnects"],
    )
    outbox = Outbox(ids, relay.offer)
    channel = open_channel(settings.publisher_target)
    publisher = PublisherClient(channel, deadline=settings.withdraw_deadline)
    directory = AccountClient(channel, deadline=settings.account_deadline)
    dead_letters = DeadLetters(database, clock, ids)
    consumer = EventConsumer(
        connection=nats,
        spec=CONSUMER,
        routes=routes(ReflectPostJobs(), KeepAccounts()),
        database=database,
        clock=clock,
        dead_letters=dead_letters,
        ensure_stream=lambda: ensure_stream(jetstream, settings.events_stream),
        patience=Patience(give_up_after=settings.park_poison_after),
    )
    operations = Operations(
        service="drafts",
        migrations=MIGRATIONS,
        database=database,
        clock=clock,
        system=SystemClock(),
        dead_letters=dead_letters,
        consumers=[consumer.applier],
    )
    return Process(
        name="drafts",
        server=RpcServer(
            listen=settings.listen,
            servicers=[
                (
                    add_DraftsServiceServicer_to_server,
                    servicer(database, ids=ids, outbox=outbox, publisher=publisher, directory=directory),
                ),
                operations_servicer(operations),
            ],
            ids=ids,
        ),
        starters={
            "database": lambda: migrations.check(database, MIGRATIONS),
            "nats": lambda: connect(nats, settings.nats_url, name="drafts"),
            "events stream": lambda: ensure_stream(jetstream, settings.events_stream),
        },
        consumers=[consumer],
        loops=[
            relay,
            *loops(
                complete_withdrawals=CompleteWithdrawals(
                    database=database, clock=clock, publisher=publisher, outbox=outbox
                ),
                withdraw_period=settings.withdraw_period,
                housekeeping=Housekeeping(database, clock, Retention()),
                housekeeping_period=settings.housekeeping_period,
            ),
        ],
        closers={
            "outbox relay": relay.flush,
            "nats": lambda: close(nats),
            "channel to publisher": channel.close,
            "database": database.dispose,
        },
        grace=settings.grace,
    )


def servicer(
    database: Database, *, ids: IdSource, outbox: Outbox, publisher: Publisher, directory: Directory
) -> DraftsServicer:
    clock, ledger = DatabaseClock(), RequestLedger()
    accounts = Accounts(database=database, directory=directory)
    return DraftsServicer(
        create=CreateDraft(database=database, clock=clock, ids=ids, ledger=ledger, outbox=outbox, accounts=accounts),
        get=GetDraft(database=database, accounts=accounts),
        update=UpdateDraft(
            database=database, clock=clock, ledger=ledger, outbox=outbox, publisher=publisher, accounts=accounts
        ),
        approve=ApproveDraft(database=database, clock=clock, ledger=ledger, outbox=outbox),
    )


if __name__ == "__main__":
    sys.exit(main())
