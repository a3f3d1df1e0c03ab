"""The events of Drafts, Queue, Schedule and itself that Publisher follows, and the use case that applies each."""

from postflow.drafts.v1 import drafts_events_pb2
from postflow.publisher.v1 import publisher_events_pb2
from postflow.queue.v1 import queue_events_pb2
from postflow.schedule.v1 import schedule_events_pb2
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.follow_brands import FollowBrands
from publisher_service.application.follow_schedules import FollowSchedules
from publisher_service.application.record_notifications import RecordNotifications
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.take_over_jobs import TakeOverJobs
from publisher_service.application.take_slots import TakeSlots
from publisher_service.wire.events import saved_draft_from, slot_from
from publisher_service.wire.happenings import brand_recipients, disconnection, expiry, is_notable, post_notification
from publisher_service.wire.restored import announced_job
from publisher_service.wire.schedules import account_schedule_from
from publisher_service.wire.take_backs import canceled_posts_from
from servicekit.messaging.routes import Route, envelope_route, route
from topology import event_consumer, events_subject

CONSUMER = event_consumer("publisher", "drafts", "queue")
# A restored database reads again what Publisher itself has announced, too. No consumer of the stream has this name.
SINCE_THE_COPY = event_consumer("publisher", "drafts", "queue", "publisher")
# Of its own, so that schedules that were announced before this release are read, too.
SCHEDULES = event_consumer("publisher", "schedule", name="schedules")
# Of its own, so that nobody who is notified late holds up a post.
NOTIFICATIONS = event_consumer(
    "publisher", "publisher", subjects=(events_subject("drafts", "brand"),), name="notifications"
)


def routes(save_drafts: SaveDrafts, take_slots: TakeSlots, drop_slots: DropSlots) -> list[Route]:
    return [
        route(drafts_events_pb2.DraftSaved, saved_draft_from, save_drafts),
        envelope_route(queue_events_pb2.SlotScheduled, slot_from, take_slots),
        envelope_route(queue_events_pb2.SlotMoved, slot_from, take_slots),
        route(queue_events_pb2.SlotCanceled, canceled_posts_from, drop_slots),
    ]


def own_routes(take_over: TakeOverJobs) -> list[Route]:
    """The routes of what Publisher itself has announced, for the reconciliation of a restored database."""
    return [route(publisher_events_pb2.PostJobChanged, announced_job, take_over)]


def schedule_routes(follow_schedules: FollowSchedules) -> list[Route]:
    return [route(schedule_events_pb2.AccountScheduleChanged, account_schedule_from, follow_schedules)]


def notification_routes(record: RecordNotifications, follow_brands: FollowBrands) -> list[Route]:
    return [
        route(publisher_events_pb2.PostJobChanged, post_notification, record, wanted=is_notable),
        route(publisher_events_pb2.SocialAccountDisconnected, disconnection, record),
        envelope_route(publisher_events_pb2.SocialAccountExpiresSoon, expiry, record),
        route(drafts_events_pb2.BrandSaved, brand_recipients, follow_brands),
    ]
