"""Authors who add drafts to queues, and the drafts, accounts and schedules that they need."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from grpc.aio import Channel

from benchmarks.callers import made
from postflow.drafts.v1 import draft_pb2, drafts_service_pb2
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub
from postflow.publisher.v1 import social_account_service_pb2
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceStub
from postflow.queue.v1 import queue_service_pb2
from postflow.queue.v1.queue_service_pb2_grpc import QueueServiceStub
from postflow.schedule.v1 import account_schedule_pb2, schedule_service_pb2
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from postflow.target.v1 import target_pb2

MOST_WEEKLY_SLOTS = 500
BATCH = 1000
"""The most items of BatchAddToQueue."""
_DRAFTS_AT_ONCE = 200
_CALLERS = 8
_MINUTES_OF_A_WEEK = 7 * 24 * 60


class Account(NamedTuple):
    organization_id: str
    id: str


class Post(NamedTuple):
    """A draft on its account."""

    account: Account
    draft_id: str


class Slot(NamedTuple):
    organization_id: str
    id: str


class QueueCalls:
    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._drafts = DraftsServiceStub(channels["drafts"])
        self._queue = QueueServiceStub(channels["queue"])
        self._schedule = ScheduleServiceStub(channels["schedule"])
        self._publisher = SocialAccountServiceStub(channels["publisher"])
        self._ids = count()

    async def connect(self, accounts: Sequence[Account], *, weekly_slots: int) -> None:
        """Connects accounts, each with so many slots a week and no daily cap."""

        async def connect(number: int) -> None:
            account = accounts[number]
            await self._publisher.ConnectAccount(_connection(account))
            await self._schedule.PutAccountSchedule(_schedule(account, weekly_slots))

        await made(len(accounts), _CALLERS, connect)

    async def drafts(self, accounts: Sequence[Account], of_each: int) -> list[Post]:
        """Creates drafts. Returns them account by account in turn."""
        posts = [Post(account, f"post-{next(self._ids)}") for _ in range(of_each) for account in accounts]
        batches = _batches(posts, _DRAFTS_AT_ONCE)
        await made(len(batches), _CALLERS, lambda number: self._create(batches[number]))
        return posts

    async def add(self, post: Post) -> Slot:
        organization_id = post.account.organization_id
        response = await self._queue.AddToQueue(
            queue_service_pb2.AddToQueueRequest(
                organization_id=organization_id, draft_id=post.draft_id, request_id=f"add-{post.draft_id}"
            )
        )
        [slot] = response.queue_slots
        return Slot(organization_id, slot.id)

    async def add_batch(self, posts: Sequence[Post]) -> list[Slot]:
        """Adds drafts of one organization."""
        organization_id = posts[0].account.organization_id
        response = await self._queue.BatchAddToQueue(
            queue_service_pb2.BatchAddToQueueRequest(
                organization_id=organization_id,
                items=[
                    queue_service_pb2.QueueItem(draft_id=post.draft_id, social_account_id=post.account.id)
                    for post in posts
                ],
                request_id=f"add-{posts[0].draft_id}",
            )
        )
        assert all(result.HasField("queue_slot") for result in response.results)
        return [Slot(organization_id, result.queue_slot.id) for result in response.results]

    async def _create(self, posts: Sequence[Post]) -> None:
        response = await self._drafts.BatchCreateDrafts(
            drafts_service_pb2.BatchCreateDraftsRequest(
                organization_id=posts[0].account.organization_id,
                drafts=[drafts_service_pb2.NewDraft(draft_id=post.draft_id, draft=_draft(post)) for post in posts],
                request_id=f"create-{posts[0].draft_id}",
            )
        )
        assert all(result.HasField("draft") for result in response.results)


def batches(posts: Sequence[Post]) -> list[list[Post]]:
    """Splits drafts into calls of BatchAddToQueue."""
    return _batches(posts, BATCH)


def _batches(posts: Sequence[Post], size: int) -> list[list[Post]]:
    by_organization: dict[str, list[Post]] = {}
    for post in posts:
        by_organization.setdefault(post.account.organization_id, []).append(post)
    return [each[first : first + size] for each in by_organization.values() for first in range(0, len(each), size)]


def _draft(post: Post) -> draft_pb2.Draft:
    return draft_pb2.Draft(
        content=draft_pb2.DraftContent(text=f"A post of the benchmark: https://example.com/{post.draft_id}"),
        targets=[target_pb2.Target(social_account_id=post.account.id, channel="facebook")],
    )


def _connection(account: Account) -> social_account_service_pb2.ConnectAccountRequest:
    return social_account_service_pb2.ConnectAccountRequest(
        organization_id=account.organization_id,
        social_account_id=account.id,
        provider="sandbox",
        external_account_id=f"{account.organization_id}.{account.id}",
        credentials=social_account_service_pb2.Credentials(access_token="sandbox-token"),  # noqa: S106 - the sandbox's
    )


def _schedule(account: Account, weekly_slots: int) -> schedule_service_pb2.PutAccountScheduleRequest:
    schedule = account_schedule_pb2.AccountSchedule(
        social_account_id=account.id,
        time_zone="America/New_York",
        weekly_slots=[_weekly_slot(_MINUTES_OF_A_WEEK * number // weekly_slots) for number in range(weekly_slots)],
        enabled=True,
    )
    return schedule_service_pb2.PutAccountScheduleRequest(
        organization_id=account.organization_id, account_schedule=schedule
    )


def _weekly_slot(minute: int) -> account_schedule_pb2.WeeklySlot:
    days = account_schedule_pb2.DayOfWeek.keys()[1:]
    day, rest = divmod(minute, 24 * 60)
    return account_schedule_pb2.WeeklySlot(day_of_week=days[day], hour=rest // 60, minute=rest % 60)
