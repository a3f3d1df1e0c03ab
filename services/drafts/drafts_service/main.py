"""Composition root of a drafts process."""

import sys

from drafts_service.adapters.publisher_client import AccountClient, ChannelClient, MediaClient, PublisherClient
from drafts_service.application.account_obstacles import AccountDirectory, AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft, BatchApproveDrafts, DraftApproval
from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.content_check import ContentCheck, MediaInspector
from drafts_service.application.create_draft import BatchCreateDrafts, CreateDraft, DraftCreation
from drafts_service.application.find_draft_targets import FindDraftTargets
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.give_up_edit import ContentWithdrawer
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.keep_refusals import KeepRefusals
from drafts_service.application.known_rules import KnownRules
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.entrypoints.events import CONSUMER, routes
from drafts_service.entrypoints.loops import loops
from drafts_service.entrypoints.rpc import DraftsServicer
from drafts_service.settings import Settings
from postflow.drafts.v1.draft_targets_service_pb2_grpc import add_DraftTargetsServiceServicer_to_server
from postflow.drafts.v1.drafts_service_pb2_grpc import add_DraftsServiceServicer_to_server
from servicekit.backbone import Backbone
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import open_channel
from servicekit.run import Process, run_main

MIGRATIONS = "drafts_service.adapters.postgres.migrations"


def main() -> int:
    return run_main("drafts", Settings, compose)


async def compose(settings: Settings) -> Process:
    backbone = Backbone("drafts", settings, migrations=MIGRATIONS, housekeeping_period=settings.housekeeping_period)
    channel = open_channel(settings.publisher_target)
    publisher = PublisherClient(channel, deadline=settings.withdraw_deadline)
    directory = AccountClient(channel, deadline=settings.account_deadline)
    events = backbone.consumer(CONSUMER, routes(ReflectPostJobs(), KeepAccounts(), KeepRefusals()))
    rules = KnownRules(ChannelClient(channel, deadline=settings.account_deadline), backbone.system)
    drafts = servicer(
        backbone.database,
        ids=backbone.ids,
        outbox=backbone.outbox,
        publisher=publisher,
        directory=directory,
        rules=rules,
        media=MediaClient(channel, deadline=settings.media_deadline),
    )
    complete_withdrawals = CompleteWithdrawals(
        database=backbone.database, clock=backbone.clock, publisher=publisher, outbox=backbone.outbox
    )
    return backbone.process(
        servicers=[
            (add_DraftsServiceServicer_to_server, drafts),
            (add_DraftTargetsServiceServicer_to_server, drafts),
        ],
        operations=backbone.operations(events),
        consumers=[events],
        loops=loops(
            complete_withdrawals=complete_withdrawals,
            withdraw_period=settings.withdraw_period,
            refresh_rules=rules.refresh,
        ),
        closers={"channel to publisher": channel.close},
    )


def servicer(
    database: Database,
    *,
    ids: IdSource,
    outbox: Outbox,
    publisher: ContentWithdrawer,
    directory: AccountDirectory,
    rules: KnownRules,
    media: MediaInspector,
) -> DraftsServicer:
    clock = DatabaseClock()
    ledger = RequestLedger(database, clock)
    obstacles = AccountObstacles(database=database, directory=directory)
    check = ContentCheck(obstacles=obstacles, rules=rules, media=media)
    creation, approval = DraftCreation(ids=ids, outbox=outbox), DraftApproval(outbox)
    return DraftsServicer(
        create=CreateDraft(creation=creation, ledger=ledger, check=check),
        create_batch=BatchCreateDrafts(creation=creation, ledger=ledger, check=check),
        get=GetDraft(database=database, obstacles=obstacles),
        find_targets=FindDraftTargets(database),
        update=UpdateDraft(
            database=database,
            clock=clock,
            ledger=ledger,
            outbox=outbox,
            publisher=publisher,
            obstacles=obstacles,
            check=check,
        ),
        approve=ApproveDraft(approval=approval, ledger=ledger, check=check),
        approve_batch=BatchApproveDrafts(approval=approval, ledger=ledger, check=check),
    )


if __name__ == "__main__":
    sys.exit(main())
