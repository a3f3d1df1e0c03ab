"""The events that Drafts consumes, and the use case for each."""

from drafts_service import wire
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from postflow.publisher.v1.publisher_events_pb2 import (
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from servicekit.messaging.routes import Route, envelope_route, route
from topology import event_consumer

CONSUMER = event_consumer("drafts", "publisher")


def routes(reflect: ReflectPostJobs, keep_accounts: KeepAccounts) -> list[Route]:
    return [
        envelope_route(PostJobChanged, wire.post_job_event, reflect),
        route(SocialAccountConnected, wire.announced_account, keep_accounts),
        route(SocialAccountDisconnected, wire.announced_account, keep_accounts),
    ]
