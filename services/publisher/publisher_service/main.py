"""Composition root of a publisher process."""

import sys
from datetime import datetime
from functools import partial

from postflow.publisher.v1.notification_service_pb2_grpc import add_NotificationServiceServicer_to_server
from postflow.publisher.v1.publisher_admin_service_pb2_grpc import add_PublisherAdminServiceServicer_to_server
from postflow.publisher.v1.publisher_service_pb2_grpc import add_PublisherServiceServicer_to_server
from postflow.publisher.v1.social_account_service_pb2_grpc import add_SocialAccountServiceServicer_to_server
from publisher_service.application import post_log
from publisher_service.application.announce_started import AnnounceStarted
from publisher_service.application.begin_follow_ups import BeginFollowUps
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.count_jobs import CountJobs
from publisher_service.application.count_notifications import CountNotifications
from publisher_service.application.create_subscription import CreateSubscription
from publisher_service.application.delete_subscription import DeleteSubscription
from publisher_service.application.disconnect_account import DisconnectAccount
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.drop_old_rows import DropOldRows
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.end_holds import EndHolds
from publisher_service.application.explain_post_job import ExplainPostJob
from publisher_service.application.find_rare_work import FindRareWork
from publisher_service.application.follow_brands import FollowBrands
from publisher_service.application.follow_schedules import FollowSchedules
from publisher_service.application.free_posts import FreePosts
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.leave_safe_mode import LeaveSafeMode
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.application.prepare_ahead import PrepareAhead
from publisher_service.application.prepare_posts import PreparePosts
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.put_hold import PutHold
from publisher_service.application.put_recipients import PutRecipients
from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.application.read_activity import ReadActivity
from publisher_service.application.read_destinations import ReadDestinations
from publisher_service.application.read_holds import ReadHolds
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.application.read_notifications import ReadNotifications
from publisher_service.application.read_safe_mode import ReadSafeMode
from publisher_service.application.reconcile import Reconcile
from publisher_service.application.record_notifications import RecordNotifications
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.refresh_credentials import RefreshCredentials
from publisher_service.application.refresh_due import RefreshDue
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.release_destinations import ReleaseDestinations
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.replay_post_jobs import ReplayPostJobs
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.retry_delivery import RetryDelivery
from publisher_service.application.retry_post_job import RetryPostJob
from publisher_service.application.rotate_subscription_secret import RotateSubscriptionSecret
from publisher_service.application.send_notifications import SendNotifications
from publisher_service.application.send_post import SendPost
from publisher_service.application.send_test_notification import SendTestNotification
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.start_connect import StartConnect
from publisher_service.application.take_over_jobs import TakeOverJobs
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.update_account import UpdateAccount
from publisher_service.application.update_destination import UpdateDestination
from publisher_service.application.update_subscription import UpdateSubscription
from publisher_service.application.validate_content import ValidateContent
from publisher_service.application.wake_parked import WakeParked
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.application.watch_post_jobs import WatchPostJobs
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.rare_work import Work
from publisher_service.engine.intake import CONSUMER as COMMANDS
from publisher_service.engine.intake import CommandIntake
from publisher_service.engine.look_ups import LookUps
from publisher_service.engine.notifier import Notifier
from publisher_service.engine.pipeline import PublishPipeline
from publisher_service.engine.preparations import Preparations
from publisher_service.engine.redrive import CommandRedriver
from publisher_service.engine.refreshes import Refreshes
from publisher_service.engine.sweep import Sweep
from publisher_service.entrypoints.admin_rpc import PublisherAdminServicer
from publisher_service.entrypoints.events import (
    CONSUMER,
    NOTIFICATIONS,
    SCHEDULES,
    SINCE_THE_COPY,
    notification_routes,
    own_routes,
    routes,
    schedule_routes,
)
from publisher_service.entrypoints.loops import loops, notification_loops
from publisher_service.entrypoints.notification_rpc import SIZES as NOTIFICATION_SIZES
from publisher_service.entrypoints.notification_rpc import NotificationServicer
from publisher_service.entrypoints.rpc import DEADLINES, SIZES, PublisherServicer, SocialAccountServicer
from publisher_service.parts import Parts
from publisher_service.settings import Settings
from servicekit.backbone import Backbone
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.messaging.again import apply_again
from servicekit.messaging.consumer import EventConsumer
from servicekit.rpc.server import Servicers
from servicekit.run import Background, Loop, Process, run_main
from topology import publish_consumers

MIGRATIONS = "publisher_service.adapters.postgres.migrations"


def main() -> int:
    return run_main("publisher", Settings, compose)


async def compose(settings: Settings) -> Process:
    post_log.set_level(settings.outcome_log_level)
    backbone = Backbone("publisher", settings, migrations=MIGRATIONS)
    parts = Parts(settings, backbone)
    pipeline, look_ups = _pipeline(parts), _look_ups(parts)
    followed = routes(parts.save_drafts, TakeSlots(backbone.outbox), DropSlots(backbone.outbox))
    # Its own come only when a restored database is reconciled.
    events = backbone.consumer(CONSUMER, [*followed, *own_routes(TakeOverJobs(backbone.outbox))])
    schedules = backbone.consumer(SCHEDULES, schedule_routes(FollowSchedules(parts.on_gate_opened)))
    notifications = _notifications(parts)
    count_jobs = CountJobs(backbone.database, backbone.clock, backbone.system)
    redriver = CommandRedriver(PipelinedPublisher(backbone.nats), backbone.dead_letters)
    return backbone.process(
        servicers=_servicers(parts),
        operations=backbone.operations(
            events, schedules, notifications, numbers=count_jobs.numbers, redrivers={COMMANDS: redriver}
        ),
        starters={
            "clock": partial(parts.steady.start, backbone.clock, backbone.database),
            "publish stream": backbone.ensure_stream(settings.publish_stream),
            "marks": parts.keep_marks.start,
        },
        consumers=[pipeline, events, schedules, notifications, parts.watched_feed],
        loops=[
            look_ups,
            _preparations(parts),
            _refreshes(parts),
            *_notifiers(parts),
            *_loops(parts, pipeline, look_ups, count_jobs, _reconcile(parts, events, schedules)),
        ],
        # Visits before the providers that they ask.
        closers={
            "visits": parts.finish_connect.close,
            "providers": parts.close_providers,
            "media": parts.close_media,
        },
        sizes={**SIZES, **NOTIFICATION_SIZES},
        deadlines=DEADLINES,
    )


def _pipeline(parts: Parts) -> PublishPipeline:
    settings, backbone = parts.settings, parts.backbone
    database, clock, outbox = backbone.database, backbone.clock, backbone.outbox
    return PublishPipeline(
        intake=_intake(parts),
        wake_up=parts.wake_up,
        claim=ClaimJobs(
            database=database,
            clock=clock,
            steady=parts.steady,
            outbox=outbox,
            instance=parts.marks.process,
            on_asked=parts.wake(Work.PREPARE_POSTS),
            marks=parts.marks,
            catch_up=parts.keep_marks.catch_up,
            limits=settings.limit_defaults,
            policies=parts.policy_of,
        ),
        disown=DisownClaims(database=database, clock=clock, outbox=outbox, policy=settings.policy),
        send=SendPost(
            providers=parts.providers,
            vault=parts.vault,
            holds=HoldCheck(database=database, clock=backbone.system),
            database=database,
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
            on_closed=parts.wake(Work.FOLLOW_QUOTAS),
        ),
        announce_started=AnnounceStarted(database=database, clock=clock, outbox=outbox),
        clock=backbone.system,
        steady=parts.steady,
        lanes=parts.lanes,
        answers_again=parts.on_answer,
    )


def _intake(parts: Parts) -> CommandIntake:
    return CommandIntake(
        connection=parts.backbone.nats,
        stream=parts.settings.publish_stream,
        specs=publish_consumers(parts.settings.publish_durables),
        clock=parts.backbone.system,
        steady=parts.steady,
        dead_letters=parts.backbone.dead_letters,
    )


def _look_ups(parts: Parts) -> LookUps:
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


def _preparations(parts: Parts) -> Preparations:
    prepare = PreparePosts(
        database=parts.backbone.database,
        clock=parts.backbone.clock,
        outbox=parts.backbone.outbox,
        providers=parts.providers,
        vault=parts.vault,
        on_ready=parts.due_now.set,
    )
    return Preparations(prepare, parts.wakes[Work.PREPARE_POSTS])


def _refreshes(parts: Parts) -> Refreshes:
    refresh = RefreshDue(
        database=parts.backbone.database,
        clock=parts.backbone.clock,
        system=parts.backbone.system,
        outbox=parts.backbone.outbox,
        providers=parts.providers,
        vault=parts.vault,
        process=parts.marks.process,
        on_opened=parts.on_gate_opened,
    )
    return Refreshes(refresh, parts.wakes[Work.REFRESH_CREDENTIALS])


def _loops(
    parts: Parts, pipeline: PublishPipeline, look_ups: LookUps, count_jobs: CountJobs, reconcile: Reconcile
) -> list[Loop]:
    database, clock, outbox = parts.backbone.database, parts.backbone.clock, parts.backbone.outbox
    recover = RecoverJobs(database=database, clock=clock, steady=parts.steady, outbox=outbox, policies=parts.policy_of)
    return loops(
        sweep=Sweep(recover, look_ups.add, pipeline.submit_commands),
        sweep_period=parts.settings.sweep_period,
        due_now=parts.due_now,
        relabel_lines=RelabelLines(database=database, clock=clock, outbox=outbox),
        release_destinations=ReleaseDestinations(
            database=database, clock=clock, outbox=outbox, wake_lines=parts.wake_up.wake_lines
        ),
        wake_stranded_lines=WakeStrandedLines(database=database, clock=clock),
        wake_parked=WakeParked(
            database=database,
            clock=clock,
            outbox=outbox,
            wake_lines=parts.wake_up.wake_lines,
            limits=parts.settings.limit_defaults,
        ),
        drop_old_rows=DropOldRows(database, clock),
        count_jobs=count_jobs,
        reseal_credentials=ResealCredentials(database, parts.vault),
        drop_kept_content=DropKeptContent(database),
        follow_quotas=parts.follow_quotas,
        prepare_ahead=PrepareAhead(
            database=database, clock=clock, providers=parts.providers, ahead=parts.settings.prepare_ahead
        ),
        reconcile=reconcile,
        begin_follow_ups=BeginFollowUps(
            database=database,
            clock=clock,
            outbox=outbox,
            rules=parts.providers.rules,
            policies=parts.policy_of,
            wake_sweep=parts.due_now.set,
        ),
        keep_marks=parts.keep_marks,
        marks_changed=parts.marks.changed,
        end_holds=EndHolds(database=database, clock=clock, on_ended=parts.on_hold_ended),
        free_posts=FreePosts(
            database=database,
            clock=clock,
            outbox=outbox,
            rate=parts.settings.release_rate,
            on_freed=parts.on_gate_opened,
        ),
        find_rare_work=FindRareWork(database=database, steady=parts.steady, wakes=parts.wakes),
        wakes=parts.wakes,
    )


def _reconcile(parts: Parts, events: EventConsumer, schedules: EventConsumer) -> Reconcile:
    backbone = parts.backbone

    async def replay(since: datetime | None) -> None:
        await apply_again(backbone.nats, SINCE_THE_COPY, events.applier, since=since)
        await apply_again(backbone.nats, SCHEDULES, schedules.applier, since=since)

    return Reconcile(
        database=backbone.database,
        clock=backbone.clock,
        outbox=backbone.outbox,
        policies=parts.policy_of,
        replay=replay,
    )


def _notifications(parts: Parts) -> EventConsumer:
    record = RecordNotifications(
        clock=parts.backbone.clock,
        vault=parts.vault,
        max_age=parts.settings.notify_within,
        mails_per_hour=parts.settings.mails_per_hour,
        on_recorded=parts.on_notification_due,
    )
    return parts.backbone.consumer(NOTIFICATIONS, notification_routes(record, FollowBrands()))


def _notifiers(parts: Parts) -> list[Background]:
    backbone = parts.backbone
    send = SendNotifications(
        database=backbone.database,
        clock=backbone.clock,
        system=backbone.system,
        vault=parts.vault,
        webhooks=parts.webhooks,
        post=parts.mail_post,
        margin=parts.settings.lease_margin,
    )
    counted = CountNotifications(
        database=backbone.database, clock=backbone.clock, vault=parts.vault, is_mail_on=send.is_mail_on
    )
    return [
        Notifier("mails", send, parts.wakes[Work.SEND_MAILS], mail=True),
        Notifier("webhooks", send, parts.wakes[Work.CALL_WEBHOOKS], mail=False),
        *notification_loops(counted),
    ]


def _notification_servicer(parts: Parts) -> NotificationServicer:
    backbone, changes = parts.backbone, NotificationChanges(parts.backbone.ledger)
    return NotificationServicer(
        create=CreateSubscription(changes=changes, ids=backbone.ids, vault=parts.vault, webhooks=parts.webhooks),
        delete=DeleteSubscription(changes),
        put=PutRecipients(changes),
        read=ReadNotifications(backbone.database, is_mail_on=parts.mail_post is not None),
        retry=RetryDelivery(changes=changes, on_due=parts.on_notification_due),
        rotate=RotateSubscriptionSecret(changes=changes, vault=parts.vault),
        send_test=SendTestNotification(
            changes=changes,
            ids=backbone.ids,
            mails_per_hour=parts.settings.mails_per_hour,
            on_due=parts.on_notification_due,
        ),
        update=UpdateSubscription(changes=changes, webhooks=parts.webhooks, on_resumed=parts.on_notification_due),
    )


def _servicers(parts: Parts) -> Servicers:
    backbone = parts.backbone
    publisher = PublisherServicer(
        cancel=CancelPostJobs(ledger=backbone.ledger, outbox=backbone.outbox),
        list_destinations=ReadDestinations(backbone.database),
        explain=_explain(parts),
        inspect_media=parts.inspect_media,
        list_holds=ReadHolds(backbone.database),
        publish_now=PublishNow(
            ledger=backbone.ledger,
            outbox=backbone.outbox,
            save_drafts=parts.save_drafts,
            wake_sweep=parts.due_now.set,
            limits=parts.settings.limit_defaults,
        ),
        put_hold=PutHold(
            ledger=backbone.ledger, providers=parts.providers.names, on_changed=parts.wake(Work.RELABEL_LINES)
        ),
        read=ReadJobs(backbone.database),
        release_hold=ReleaseHold(ledger=backbone.ledger, on_released=parts.on_hold_ended),
        resolve=ResolvePostJob(ledger=backbone.ledger, outbox=backbone.outbox),
        retry=RetryPostJob(
            ledger=backbone.ledger,
            outbox=backbone.outbox,
            rules=parts.providers.rules,
            wake_sweep=parts.due_now.set,
        ),
        update_destination=UpdateDestination(
            ledger=backbone.ledger, on_activated=parts.wake(Work.RELEASE_DESTINATIONS)
        ),
        validate=ValidateContent(database=backbone.database, rules=parts.providers.rules),
        channels=[(each.name, each.proof, each.rules) for each in parts.providers],
        watch=WatchPostJobs(
            database=backbone.database,
            feed=parts.watched_feed,
            most_per_organization=max(parts.settings.watchers // 2, 1),
        ),
        withdraw=WithdrawContent(backbone.database),
    )
    admin = PublisherAdminServicer(
        leave=LeaveSafeMode(
            database=backbone.database,
            clock=backbone.clock,
            ledger=backbone.ledger,
            outbox=backbone.outbox,
            wake_lines=parts.wake_up.wake_lines,
        ),
        read=ReadSafeMode(backbone.database),
        replay=ReplayPostJobs(database=backbone.database, clock=backbone.clock, outbox=backbone.outbox),
    )
    return [
        (add_PublisherServiceServicer_to_server, publisher),
        (add_SocialAccountServiceServicer_to_server, _accounts(parts)),
        (add_PublisherAdminServiceServicer_to_server, admin),
        (add_NotificationServiceServicer_to_server, _notification_servicer(parts)),
    ]


def _explain(parts: Parts) -> ExplainPostJob:
    return ExplainPostJob(
        database=parts.backbone.database,
        clock=parts.backbone.clock,
        vault=parts.vault,
        lanes=lambda: [lane.now for lane in parts.lanes.values()],
        marks=parts.marks,
        rules=parts.providers.rules,
        limits=parts.settings.limit_defaults,
    )


def _accounts(parts: Parts) -> SocialAccountServicer:
    backbone = parts.backbone
    connect = ConnectAccount(database=backbone.database, ledger=backbone.ledger, storing=parts.storing)
    disconnect = DisconnectAccount(
        ledger=backbone.ledger,
        outbox=backbone.outbox,
        vault=parts.vault,
        on_changed=parts.wake(Work.RELABEL_LINES),
    )
    update = UpdateAccount(
        ledger=backbone.ledger,
        outbox=backbone.outbox,
        providers=parts.providers,
        defaults=parts.settings.limit_defaults,
        on_caps_changed=parts.wake(Work.WAKE_PARKED),
    )
    start = StartConnect(
        database=backbone.database,
        ledger=backbone.ledger,
        vault=parts.vault,
        storing=parts.storing,
        redirect_uris=parts.settings.redirect_uris.split(),
    )
    refresh = RefreshCredentials(
        database=backbone.database,
        clock=backbone.clock,
        system=backbone.system,
        ledger=backbone.ledger,
        wake=parts.wake(Work.REFRESH_CREDENTIALS),
    )
    return SocialAccountServicer(
        start=start,
        finish=parts.finish_connect,
        refresh=refresh,
        activity=ReadActivity(backbone.database, backbone.clock, parts.settings.limit_defaults),
        connect=connect,
        disconnect=disconnect,
        read=ReadAccounts(backbone.database),
        update=update,
    )


if __name__ == "__main__":
    sys.exit(main())
