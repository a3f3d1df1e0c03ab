"""The events that Queue consumes, each with its use case."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import (
    CommandsAccepted,
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.follow_schedules import follow_schedules
from queue_service.application.settle_slots import SettleSlots
from queue_service.wire.connections import connection
from queue_service.wire.drafts import saved_draft
from queue_service.wire.post_jobs import accepted_commands, job_report
from queue_service.wire.schedules import changed_schedule
from servicekit.messaging.consumer import Apply, Received, Route
from servicekit.pg.database import Transaction
from topology import event_consumer

CONSUMER = event_consumer("queue", "drafts", "schedule", "publisher")

T = TypeVar("T")
UseCase = Callable[[Transaction, Sequence[T], datetime], Awaitable[None]]


def routes(*, settle_slots: SettleSlots, follow_drafts: FollowDrafts) -> list[Route]:
    return [
        Route(message=DraftSaved, apply=_decoded(saved_draft, follow_drafts)),
        Route(message=AccountScheduleChanged, apply=_decoded(changed_schedule, follow_schedules)),
        Route(message=PostJobChanged, apply=_decoded(job_report, settle_slots)),
        Route(message=SocialAccountConnected, apply=_decoded(connection, follow_accounts)),
        Route(message=SocialAccountDisconnected, apply=_decoded(connection, follow_accounts)),
        Route(message=CommandsAccepted, apply=_flattened(accepted_commands, settle_slots)),
    ]


def _decoded(decode: Callable[[Any], T], use_case: UseCase[T]) -> Apply:
    async def apply(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        await use_case(tx, [decode(received.message) for received in events], now)

    return apply


def _flattened(decode: Callable[[Any], Sequence[T]], use_case: UseCase[T]) -> Apply:
    """Decodes a message that carries many events."""

    async def apply(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        await use_case(tx, [each for received in events for each in decode(received.message)], now)

    return apply
