"""Parts of the engine for its unit tests: claimed posts, and deliveries that note their replies."""

from datetime import timedelta
from typing import Any, cast

from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.engine.held_command import HeldCommand
from tests.unit.publisher_service.post_jobs import NOW


class RecordingDelivery:
    """A delivery of the stream that notes the replies to it."""

    def __init__(self) -> None:
        self.replies: list[object] = []

    async def ack(self) -> None:
        self.replies.append("ack")

    async def retry_in(self, delay: timedelta) -> None:
        self.replies.append(delay)


def a_held(command: Command, delivery: RecordingDelivery | None = None) -> HeldCommand:
    return HeldCommand(command=command, since=0, delivery=cast(Any, delivery))


def a_claimed(command: Command) -> Claimed:
    job = PostJob(
        organization_id=command.organization_id,
        id=command.post_job_id,
        draft_id=command.draft_id,
        target=command.target,
        state=JobState.SENDING,
        create_time=NOW,
        update_time=NOW,
    )
    return Claimed(
        job=job,
        provider="sandbox",
        external_account_id="",
        credentials=b"",
        content=b"",
        content_digest="",
        idempotency_key="",
        lease=timedelta(seconds=15),
    )
