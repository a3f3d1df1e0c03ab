"""What drafts listens to, and which use case takes it."""

from collections.abc import Sequence
from datetime import datetime

from drafts_service import wire
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from servicekit.bus.consumer import Received, Route
from servicekit.pg.database import Transaction
from topology import event_consumer

CONSUMER = event_consumer("drafts", "publisher")


def routes(reflect: ReflectPostJobs) -> list[Route]:
    async def post_jobs_changed(tx: Transaction, received: Sequence[Received], now: datetime) -> None:
        events = []
        for each in received:
            assert isinstance(each.message, PostJobChanged)
            events.append(wire.post_job_event(each.event, each.message))
        await reflect(tx, events, now)

    return [Route(message=PostJobChanged, apply=post_jobs_changed)]
