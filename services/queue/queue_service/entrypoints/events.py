"""The events that Queue consumes, each with its use case."""

from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import (
    CommandsAccepted,
    PostJobChanged,
    PublisherRestored,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.follow_schedules import follow_schedules
from queue_service.application.repeat_commands import RepeatCommands
from queue_service.application.settle_slots import SettleSlots
from queue_service.wire.connections import connection
from queue_service.wire.drafts import saved_draft
from queue_service.wire.post_jobs import accepted_commands, job_report, restored_time
from queue_service.wire.schedules import changed_schedule
from servicekit.messaging.routes import Route, flat_route, route
from topology import event_consumer

CONSUMER = event_consumer("queue", "drafts", "schedule", "publisher")


def restore_routes(repeat_commands: RepeatCommands) -> list[Route]:
    return [route(PublisherRestored, restored_time, repeat_commands)]


def routes(*, settle_slots: SettleSlots, follow_drafts: FollowDrafts) -> list[Route]:
    return [
        route(DraftSaved, saved_draft, follow_drafts),
        route(AccountScheduleChanged, changed_schedule, follow_schedules),
        route(PostJobChanged, job_report, settle_slots),
        route(SocialAccountConnected, connection, follow_accounts),
        route(SocialAccountDisconnected, connection, follow_accounts),
        flat_route(CommandsAccepted, accepted_commands, settle_slots),
    ]
