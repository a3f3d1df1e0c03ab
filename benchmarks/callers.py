"""The calls that are measured, each made for the number of its draft, and the organizations that make them."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

from grpc.aio import Channel

from postflow.drafts.v1 import draft_pb2, drafts_service_pb2
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub
from postflow.publisher.v1 import social_account_service_pb2
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceStub
from postflow.queue.v1 import queue_service_pb2
from postflow.queue.v1.queue_service_pb2_grpc import QueueServiceStub
from postflow.schedule.v1 import account_schedule_pb2, schedule_service_pb2
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from postflow.target.v1 import target_pb2
from servicekit.clock import SystemClock
from servicekit.timestamps import timestamp

Call = Callable[[int], Awaitable[Any]]

ORGANIZATIONS = 50
ACCOUNTS = 500
BATCH = 100
"""Drafts of a batch."""
_TEXT = "A post of the benchmark, as long as many a real one is: two sentences, and a link. https://example.com/a/post"


class Account(NamedTuple):
    organization_id: str
    id: str


def accounts() -> list[Account]:
    """Returns accounts that belong to organizations of very different sizes: the n-th has 1/n of the first's."""
    sizes = [1 / rank for rank in range(1, ORGANIZATIONS + 1)]
    owners = random.Random(9).choices(range(ORGANIZATIONS), weights=sizes, k=ACCOUNTS)
    return [Account(f"org-{owner}", f"account-{number}") for number, owner in enumerate(owners)]


async def made(calls: int, callers: int, call: Call, *, first: int = 0) -> None:
    """Makes so many calls, one after the other by each of the callers."""
    numbers = iter(range(first, first + calls))

    async def caller() -> None:
        for number in numbers:
            await call(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


class Calls:
    """The calls of authors. A number is a draft: the same number is the same draft in each call."""

    def __init__(self, channels: Mapping[str, Channel], prefix: str = "draft") -> None:
        self._drafts = DraftsServiceStub(channels["drafts"])
        self._queue = QueueServiceStub(channels["queue"])
        self._schedule = ScheduleServiceStub(channels["schedule"])
        self._publisher = SocialAccountServiceStub(channels["publisher"])
        self._prefix = prefix
        self._accounts = accounts()
        # Neighbours in time are different accounts, but not in the order of the accounts.
        random.Random(7).shuffle(self._accounts)
        self._start = SystemClock().now() + timedelta(days=30)
        self._requests = count()

    async def connect(self, number: int) -> None:
        """Connects an account and gives it a schedule of twelve posts a day."""
        account = self._accounts[number]
        await self._publisher.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=account.organization_id,
                social_account_id=account.id,
                provider="sandbox",
                external_account_id=f"{account.organization_id}.{account.id}",
                credentials=social_account_service_pb2.Credentials(access_token="sandbox-token"),  # noqa: S106 - the sandbox's
            )
        )
        await self._schedule.PutAccountSchedule(
            schedule_service_pb2.PutAccountScheduleRequest(
                organization_id=account.organization_id, account_schedule=_schedule(account.id)
            )
        )

    async def create(self, number: int) -> None:
        account = self._account(number)
        await self._drafts.CreateDraft(
            drafts_service_pb2.CreateDraftRequest(
                organization_id=account.organization_id,
                draft_id=self._draft(number),
                draft=_content(account, number),
                request_id=self._request(),
            )
        )

    async def create_batch(self, number: int) -> None:
        account = self._account(number)
        response = await self._drafts.BatchCreateDrafts(
            drafts_service_pb2.BatchCreateDraftsRequest(
                organization_id=account.organization_id,
                drafts=[
                    drafts_service_pb2.NewDraft(draft_id=draft_id, draft=_content(account, number))
                    for draft_id in self._batch(number)
                ],
                request_id=self._request(),
            )
        )
        assert all(result.HasField("draft") for result in response.results)

    async def approve_batch(self, number: int) -> None:
        response = await self._drafts.BatchApproveDrafts(
            drafts_service_pb2.BatchApproveDraftsRequest(
                organization_id=self._account(number).organization_id,
                drafts=[drafts_service_pb2.DraftToApprove(draft_id=draft_id) for draft_id in self._batch(number)],
                request_id=self._request(),
            )
        )
        assert all(result.HasField("draft") for result in response.results)

    async def approve(self, number: int) -> None:
        await self._drafts.ApproveDraft(
            drafts_service_pb2.ApproveDraftRequest(
                organization_id=self._account(number).organization_id,
                draft_id=self._draft(number),
                request_id=self._request(),
            )
        )

    async def schedule_at(self, number: int) -> None:
        await self._queue.ScheduleAt(
            queue_service_pb2.ScheduleAtRequest(
                organization_id=self._account(number).organization_id,
                draft_id=self._draft(number),
                schedule_time=timestamp(self._start + timedelta(minutes=number)),
                request_id=self._request(),
            )
        )

    async def add_to_queue(self, number: int) -> None:
        await self._queue.AddToQueue(
            queue_service_pb2.AddToQueueRequest(
                organization_id=self._account(number).organization_id,
                draft_id=self._draft(number),
                request_id=self._request(),
            )
        )

    async def get(self, number: int) -> None:
        await self._drafts.GetDraft(
            drafts_service_pb2.GetDraftRequest(
                organization_id=self._account(number).organization_id, draft_id=self._draft(number)
            )
        )

    def _account(self, number: int) -> Account:
        return self._accounts[number % len(self._accounts)]

    def _draft(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    def _batch(self, number: int) -> list[str]:
        return [f"{self._prefix}-{number}-{place}" for place in range(BATCH)]

    def _request(self) -> str:
        """Returns a new request id: a caller that may repeat a call sends one, so the ledger is part of the cost."""
        return f"{self._prefix}-request-{next(self._requests)}"


def _content(account: Account, number: int) -> draft_pb2.Draft:
    return draft_pb2.Draft(
        content=draft_pb2.DraftContent(text=f"{_TEXT}/{number}"),
        targets=[target_pb2.Target(social_account_id=account.id, channel="facebook")],
    )


def _schedule(account: str) -> account_schedule_pb2.AccountSchedule:
    days = account_schedule_pb2.DayOfWeek.keys()[1:]
    slots = [
        account_schedule_pb2.WeeklySlot(day_of_week=day, hour=hour, minute=0) for day in days for hour in range(8, 20)
    ]
    return account_schedule_pb2.AccountSchedule(
        social_account_id=account, time_zone="America/New_York", weekly_slots=slots, enabled=True
    )
