"""Measures how late posts of a steady rate are, and how long AddToQueue takes."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from grpc.aio import Channel

from benchmarks import seed
from benchmarks.result import Result, percentile
from devstack.stack import Stack
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
from servicekit.rpc import open_channel

_clock = SystemClock()


async def measure(stack: Stack, seeder: seed.Seeder, per_second: int, seconds: int) -> list[Result]:
    """Measures posts at a steady rate, made by RPC half a minute ahead; the provider's clock says how late they are."""
    wanted = seed.posts(per_second * seconds, "late")
    await seeder.accounts(wanted)
    due = await scheduled_ahead(stack, wanted, "late", per_second=per_second)
    late = await late_by(stack, due)
    at = f"at {per_second}/s"
    return [
        Result(name=f"lateness p50 {at}", value=percentile(late, 0.5), unit="ms", target=1),
        Result(name=f"lateness p99 {at}", value=percentile(late, 0.99), unit="ms", target=5),
        Result(name=f"lateness max {at}", value=max(late), unit="ms"),
        Result(name=f"earliest {at}", value=min(late), unit="ms", note="must not be under -50"),
    ]


async def scheduled_ahead(
    stack: Stack, wanted: Sequence[seed.Post], prefix: str, *, per_second: int
) -> dict[str, datetime]:
    """Creates and schedules drafts for the accounts of these posts by RPC; returns when each is due, by id."""
    start = _clock.now() + timedelta(seconds=20 + len(wanted) / 60)
    due = {f"{prefix}-{number}": start + timedelta(seconds=number / per_second) for number in range(len(wanted))}
    async with open_channel(stack.targets["drafts"]) as drafts, open_channel(stack.targets["queue"]) as queue:
        calls = _Calls(drafts, queue)
        room = asyncio.Semaphore(8)

        async def make(name: str, post: seed.Post) -> None:
            async with room:
                await calls.draft(post.organization_id, name, post.account_id)
                await calls.schedule_at(post.organization_id, name, due[name])

        async with asyncio.TaskGroup() as group:
            for name, post in zip(due, wanted, strict=True):
                group.create_task(make(name, post))
    assert _clock.now() < start, "the posts were made too slowly to be in time"
    return due


async def late_by(stack: Stack, due: Mapping[str, datetime]) -> list[float]:
    """Waits until all posts are out; returns the milliseconds between the due time of each and its effect."""
    await asyncio.sleep((max(due.values()) - _clock.now()).total_seconds() + 3)
    sent = {
        entry["text"]: datetime.fromisoformat(entry["time"])
        for entry in stack.sandbox.effects()
        if entry["text"] in due
    }
    assert len(sent) == len(due), f"{len(due) - len(sent)} posts have not gone out"
    return [(sent[name] - due[name]).total_seconds() * 1000 for name in due]


def effect_times(stack: Stack) -> dict[str, float]:
    """Returns when each account's post has gone out, as seconds since the epoch."""
    return {
        str(entry["account"]): datetime.fromisoformat(entry["time"]).timestamp() for entry in stack.sandbox.effects()
    }


async def add_to_queue(stack: Stack, calls_made: int) -> list[Result]:
    accounts = 20
    took: list[float] = []
    async with (
        open_channel(stack.targets["schedule"]) as schedule,
        open_channel(stack.targets["drafts"]) as drafts,
        open_channel(stack.targets["queue"]) as queue,
        open_channel(stack.targets["publisher"]) as publisher,
    ):
        calls = _Calls(drafts, queue)
        for number in range(accounts):
            await SocialAccountServiceStub(publisher).ConnectAccount(_connection(f"queue-account-{number}"))
            await ScheduleServiceStub(schedule).PutAccountSchedule(_schedule(f"queue-account-{number}"))
        for number in range(calls_made):
            await calls.draft("org-0", f"add-{number}", f"queue-account-{number % accounts}")
        for number in range(calls_made):
            began = time.perf_counter()
            await calls.queue.AddToQueue(
                queue_service_pb2.AddToQueueRequest(
                    organization_id="org-0", draft_id=f"add-{number}", request_id=f"add-{number}"
                )
            )
            took.append((time.perf_counter() - began) * 1000)
    return [
        Result(name="AddToQueue p50", value=percentile(took, 0.5), unit="ms", target=15),
        Result(name="AddToQueue p99", value=percentile(took, 0.99), unit="ms"),
    ]


class _Calls:
    def __init__(self, drafts: Channel, queue: Channel) -> None:
        self.drafts = DraftsServiceStub(drafts)
        self.queue = QueueServiceStub(queue)

    async def draft(self, organization: str, draft: str, account: str) -> None:
        """Creates and approves a draft. Its text is its id, which identifies it in the provider's ledger."""
        target = target_pb2.Target(social_account_id=account, channel="facebook")
        await self.drafts.CreateDraft(
            drafts_service_pb2.CreateDraftRequest(
                organization_id=organization,
                draft_id=draft,
                draft=draft_pb2.Draft(content=draft_pb2.DraftContent(text=draft), targets=[target]),
            )
        )
        await self.drafts.ApproveDraft(
            drafts_service_pb2.ApproveDraftRequest(organization_id=organization, draft_id=draft)
        )

    async def schedule_at(self, organization: str, draft: str, due: datetime) -> None:
        request = queue_service_pb2.ScheduleAtRequest(organization_id=organization, draft_id=draft)
        request.schedule_time.FromDatetime(due)
        await self.queue.ScheduleAt(request)


def _connection(account: str) -> social_account_service_pb2.ConnectAccountRequest:
    return social_account_service_pb2.ConnectAccountRequest(
        organization_id="org-0",
        social_account_id=account,
        provider="sandbox",
        external_account_id=f"org-0.{account}",
        credentials=social_account_service_pb2.Credentials(access_token="sandbox-token"),  # noqa: S106 - the sandbox's
    )


def _schedule(account: str) -> schedule_service_pb2.PutAccountScheduleRequest:
    days = account_schedule_pb2.DayOfWeek.keys()[1:]
    slots = [
        account_schedule_pb2.WeeklySlot(day_of_week=day, hour=hour, minute=0) for day in days for hour in range(8, 20)
    ]
    schedule = account_schedule_pb2.AccountSchedule(
        social_account_id=account, time_zone="America/New_York", weekly_slots=slots
    )
    return schedule_service_pb2.PutAccountScheduleRequest(organization_id="org-0", account_schedule=schedule)
