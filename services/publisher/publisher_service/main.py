"""Composition root of a publisher process."""

import asyncio
import sys
from functools import partial

from postflow.publisher.v1.publisher_service_pb2_grpc import add_PublisherServiceServicer_to_server
from postflow.publisher.v1.social_account_service_pb2_grpc import add_SocialAccountServiceServicer_to_server
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.vault import Vault, read_keys
from publisher_service.application import post_log
from publisher_service.application.announce_started import AnnounceStarted
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.put_hold import PutHold
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import SendPost
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.policy import Policy
from publisher_service.engine.intake import CONSUMER as COMMANDS
from publisher_service.engine.intake import CommandIntake
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.look_ups import LookUps
from publisher_service.engine.pipeline import PublishPipeline
from publisher_service.engine.redrive import CommandRedriver
from publisher_service.engine.sweep import Sweep
from publisher_service.engine.wake_up import WakeUp
from publisher_service.entrypoints.events import CONSUMER, routes
from publisher_service.entrypoints.loops import loops
from publisher_service.entrypoints.rpc import PublisherServicer, SocialAccountServicer
from publisher_service.settings import Settings
from servicekit.backbone import Backbone
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.pg.clock import SteadyClock
from servicekit.rpc.server import Servicers
from servicekit.run import Loop, Process, run_main
from topology import publish_consumers

MIGRATIONS = "publisher_service.adapters.postgres.migrations"


def main() -> int:
    return run_main("publisher", Settings, compose)


async def compose(settings: Settings) -> Process:
    post_log.set_level(settings.outcome_log_level)
    parts = _Parts(settings)
    backbone = parts.backbone
    pipeline, look_ups = _pipeline(parts), _look_ups(parts)
    save_drafts = SaveDrafts(backbone.outbox, parts.due_now.set)
    events = backbone.consumer(CONSUMER, routes(save_drafts, TakeSlots(backbone.outbox), DropSlots(backbone.outbox)))
    count_jobs = CountJobs(backbone.database, backbone.clock)
    redriver = CommandRedriver(PipelinedPublisher(backbone.nats), backbone.dead_letters)
    return backbone.process(
        servicers=_servicers(parts),
        operations=backbone.operations(events, numbers=count_jobs.numbers, redrivers={COMMANDS: redriver}),
        starters={
            "clock": partial(parts.steady.start, backbone.clock, backbone.database),
            "publish stream": backbone.ensure_stream(settings.publish_stream),
        },
        consumers=[pipeline, events],
        loops=[look_ups, *_loops(parts, pipeline, look_ups, count_jobs)],
        closers={"providers": parts.sandbox.close},
    )


class _Parts:
    """The parts that several use cases share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.backbone = Backbone("publisher", settings, migrations=MIGRATIONS)
        self.steady = SteadyClock(self.backbone.system)
        self.vault = Vault(read_keys(settings.credentials_key, settings.credentials_keys_file))
        self.sandbox = HttpOrigin(settings.sandbox_url, connections=settings.senders * 2)
        self.providers = Providers([SandboxAdapter(self.sandbox, settings.limits)], self.backbone.system)
        self._policy = settings.policy
        self._policies = {provider.name: provider.policy(self._policy) for provider in self.providers}
        self.late = LateEvidence(self.backbone.outbox)
        self.wake_up = WakeUp()
        self.due_now, self.gate_changed = asyncio.Event(), asyncio.Event()

    def policy_of(self, name: str) -> Policy:
        """Returns the policy of a provider; the common one for a provider that only another release has."""
        return self._policies.get(name, self._policy)

    def lookers_of(self, name: str) -> int:
        provider = self.providers.get(name)
        return self.settings.limits.lookers if provider is None else provider.limits.lookers

    def on_gate_opened(self) -> None:
        self.wake_up.wake_lines()
        self.gate_changed.set()


def _pipeline(parts: _Parts) -> PublishPipeline:
    settings, backbone = parts.settings, parts.backbone
    database, clock, outbox = backbone.database, backbone.clock, backbone.outbox
    return PublishPipeline(
        intake=_intake(parts),
        wake_up=parts.wake_up,
        claim=ClaimJobs(
            database=database, clock=clock, steady=parts.steady, outbox=outbox, instance=backbone.ids.new()
        ),
        disown=DisownClaims(database=database, clock=clock, outbox=outbox, policy=settings.policy),
        send=SendPost(
            providers=parts.providers,
            vault=parts.vault,
            holds=HoldCheck(database=database, clock=backbone.system),
            clock=backbone.system,
            steady=parts.steady,
        ),
        settle=SettlePosts(
            database=database,
            clock=clock,
            ids=backbone.ids,
            outbox=outbox,
            policies=parts.policy_of,
            late=parts.late,
            providers=parts.providers.names,
            wake_lines=parts.wake_up.wake_lines,
        ),
        announce_started=AnnounceStarted(database=database, clock=clock, outbox=outbox),
        clock=backbone.system,
        steady=parts.steady,
        lanes={
            provider.name: ProviderLane(
                provider.name,
                senders=provider.limits.senders,
                lease=provider.limits.request_timeout + settings.lease_margin,
            )
            for provider in parts.providers
        },
    )


def _intake(parts: _Parts) -> CommandIntake:
    return CommandIntake(
        connection=parts.backbone.nats,
        stream=parts.settings.publish_stream,
        specs=publish_consumers(parts.settings.publish_durables),
        clock=parts.backbone.system,
        steady=parts.steady,
        dead_letters=parts.backbone.dead_letters,
    )


def _look_ups(parts: _Parts) -> LookUps:
    resolve = ResolveUnknown(
        database=parts.backbone.database,
        clock=parts.backbone.clock,
        outbox=parts.backbone.outbox,
        providers=parts.providers,
        vault=parts.vault,
        policies=parts.policy_of,
        late=parts.late,
    )
    return LookUps(resolve, parts.lookers_of)


def _loops(parts: _Parts, pipeline: PublishPipeline, look_ups: LookUps, count_jobs: CountJobs) -> list[Loop]:
    database, clock, outbox = parts.backbone.database, parts.backbone.clock, parts.backbone.outbox
    recover = RecoverJobs(database=database, clock=clock, steady=parts.steady, outbox=outbox, policies=parts.policy_of)
    return loops(
        sweep=Sweep(recover, look_ups.add, pipeline.submit_commands),
        sweep_period=parts.settings.sweep_period,
        due_now=parts.due_now,
        relabel_lines=RelabelLines(database=database, clock=clock, outbox=outbox),
        gate_changed=parts.gate_changed,
        wake_stranded_lines=WakeStrandedLines(database=database, clock=clock),
        count_jobs=count_jobs,
        reseal_credentials=ResealCredentials(database, parts.vault),
        drop_kept_content=DropKeptContent(database),
    )


def _servicers(parts: _Parts) -> Servicers:
    backbone = parts.backbone
    publisher = PublisherServicer(
        cancel=CancelPostJobs(ledger=backbone.ledger, outbox=backbone.outbox),
        list_holds=ReadHolds(backbone.database),
        put_hold=PutHold(ledger=backbone.ledger, on_changed=parts.gate_changed.set),
        read=ReadJobs(backbone.database),
        release_hold=ReleaseHold(ledger=backbone.ledger, on_released=parts.on_gate_opened),
        resolve=ResolvePostJob(ledger=backbone.ledger, outbox=backbone.outbox),
        withdraw=WithdrawContent(backbone.database),
    )
    connect = ConnectAccount(
        database=backbone.database,
        ids=backbone.ids,
        ledger=backbone.ledger,
        outbox=backbone.outbox,
        vault=parts.vault,
        providers=parts.providers,
        on_connected=parts.on_gate_opened,
    )
    accounts = SocialAccountServicer(connect=connect, read=ReadAccounts(backbone.database))
    return [
        (add_PublisherServiceServicer_to_server, publisher),
        (add_SocialAccountServiceServicer_to_server, accounts),
    ]


if __name__ == "__main__":
    sys.exit(main())
