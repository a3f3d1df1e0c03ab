"""The events that Drafts consumes, and the use case for each."""

from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.keep_refusals import KeepRefusals
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.wire import events
from postflow.publisher.v1.publisher_events_pb2 import (
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.queue.v1.queue_events_pb2 import SlotRefused
from servicekit.messaging.routes import Route, envelope_route, route
from topology import event_consumer, events_subject

# Of Queue's events only those about drafts: an event of each slot would cost every post.
CONSUMER = event_consumer("drafts", "publisher", subjects=(events_subject("queue", "draft"),))


def routes(reflect: ReflectPostJobs, keep_accounts: KeepAccounts, keep_refusals: KeepRefusals) -> list[Route]:
    return [
        envelope_route(PostJobChanged, events.post_job_event, reflect),
        route(SocialAccountConnected, events.announced_account, keep_accounts),
        route(SocialAccountDisconnected, events.announced_account, keep_accounts),
        route(SlotRefused, events.refused_slot, keep_refusals),
    ]
