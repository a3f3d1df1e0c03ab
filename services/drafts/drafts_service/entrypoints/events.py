"""The events that Drafts consumes, and the use case for each."""

from collections.abc import Sequence
from datetime import datetime

from drafts_service import wire
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from postflow.publisher.v1.publisher_events_pb2 import (
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from servicekit.messaging.consumer import Received, Route
from servicekit.pg.database import Transaction
from topology import event_consumer

CONSUMER = event_consumer("drafts", "publisher")


def routes(reflect: ReflectPostJobs, keep_accounts: KeepAccounts) -> list[Route]:
    async def post_jobs_changed(tx: Transaction, received: Sequence[Received], now: datetime) -> None:
        events = []
        for each in received:
            assert isinstance(each.message, PostJobChanged)
            events.append(wire.post_job_event(each.event, each.message))
        await reflect(tx, events, now)

    async def accounts_changed(tx: Transaction, received: Sequence[Received], now: datetime) -> None:
        accounts = []
        for each in received:
            assert isinstance(each.message, SocialAccountConnected | SocialAccountDisconnected)
            accounts.append(wire.account(each.message.organization_id, each.message.social_account))
        await keep_accounts(tx, accounts, now)

    return [
        Route(message=PostJobChanged, apply=post_jobs_changed),
        Route(message=SocialAccountConnected, apply=accounts_changed),
        Route(message=SocialAccountDisconnected, apply=accounts_changed),
    ]
