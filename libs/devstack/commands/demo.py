"""`make demo`: one post from the first call to the sandbox provider's ledger, each state as it happens."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import grpc
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from devstack.commands.render import Printer
from devstack.commands.up import time_of_day, until_stopped
from devstack.errors import StackError
from devstack.stack import Stack
from postflow.drafts.v1 import draft_pb2, drafts_service_pb2, drafts_service_pb2_grpc
from postflow.publisher.v1 import (
    post_job_pb2,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
    social_account_service_pb2,
    social_account_service_pb2_grpc,
)
from postflow.queue.v1 import queue_service_pb2, queue_service_pb2_grpc, queue_slot_pb2
from postflow.schedule.v1 import account_schedule_pb2, schedule_service_pb2, schedule_service_pb2_grpc
from postflow.target.v1 import target_pb2
from servicekit.clock import Clock, SystemClock
from servicekit.rpc import open_channel
from servicekit.timestamps import timestamp

ORGANIZATION = "demo"
ACCOUNT = "demo-page"
DRAFT = "demo-draft"
TOKEN = "sandbox-demo"
POLL_SECONDS = 0.02
ENDED = frozenset({"PUBLISHED", "PARTIALLY_PUBLISHED", "FAILED", "MISSED", "NEEDS_ATTENTION", "CANCELED"})


def run(*, ahead: float, timeout: float, verbose: bool) -> int:
    clock = SystemClock()
    printer = Printer(sys.stdout, lambda: time_of_day(clock))
    folder = Path(tempfile.mkdtemp(prefix="postflow-demo-"))
    try:
        on_line = printer.line if verbose else None
        stack = Stack(folder / "state", durable=True, on_line=on_line, on_event=printer.event)
        return asyncio.run(until_stopped(stack, printer, lambda: _follow(stack, printer, clock, ahead, timeout)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _follow(stack: Stack, printer: Printer, clock: Clock, ahead: float, timeout: float) -> int:
    printer.say("PostFlow starts in a temporary folder")
    async with stack:
        demo = Demo(stack, clock, printer)
        try:
            due = await demo.send(timedelta(seconds=ahead))
            published = await demo.watch(due, timedelta(seconds=ahead + timeout))
        except grpc.aio.AioRpcError as error:
            raise StackError(f"{error.code().name}: {error.details()}") from None
        finally:
            await demo.close()
        return _verdict(stack, printer, due, published)


class Demo:
    def __init__(self, stack: Stack, clock: Clock, printer: Printer) -> None:
        self._clock = clock
        self._printer = printer
        self._channels = {service: open_channel(target) for service, target in stack.targets.items()}
        self._schedule = schedule_service_pb2_grpc.ScheduleServiceStub(self._channels["schedule"])
        self._queue = queue_service_pb2_grpc.QueueServiceStub(self._channels["queue"])
        self._drafts = drafts_service_pb2_grpc.DraftsServiceStub(self._channels["drafts"])
        self._publisher = publisher_service_pb2_grpc.PublisherServiceStub(self._channels["publisher"])
        self._accounts = social_account_service_pb2_grpc.SocialAccountServiceStub(self._channels["publisher"])

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def send(self, ahead: timedelta) -> datetime:
        """Makes the calls that a user makes; returns the time that the post is due."""
        await self._accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=ORGANIZATION,
                social_account_id=ACCOUNT,
                provider="sandbox",
                external_account_id="page-1",
                credentials=social_account_service_pb2.Credentials(access_token=TOKEN),
            )
        )
        self._printer.say("publisher  account connected")
        await self._schedule.PutAccountSchedule(
            schedule_service_pb2.PutAccountScheduleRequest(organization_id=ORGANIZATION, account_schedule=_schedule())
        )
        self._printer.say("schedule   weekly slots stored")
        target = target_pb2.Target(social_account_id=ACCOUNT, channel="facebook")
        content = draft_pb2.DraftContent(text="Hello from the demo")
        await self._drafts.CreateDraft(
            drafts_service_pb2.CreateDraftRequest(
                organization_id=ORGANIZATION, draft_id=DRAFT, draft=draft_pb2.Draft(content=content, targets=[target])
            )
        )
        await self._drafts.ApproveDraft(
            drafts_service_pb2.ApproveDraftRequest(organization_id=ORGANIZATION, draft_id=DRAFT)
        )
        self._printer.say("drafts     draft created and approved")
        due = self._clock.now() + ahead
        schedule_time = timestamp(due)
        await self._queue.ScheduleAt(
            queue_service_pb2.ScheduleAtRequest(
                organization_id=ORGANIZATION, draft_id=DRAFT, schedule_time=schedule_time
            )
        )
        self._printer.say(f"queue      due in {ahead.total_seconds():g} s; from here on times count from that instant")
        return due

    async def watch(self, due: datetime, within: timedelta) -> bool:
        """Prints what changes until the draft has ended; returns whether it ended PUBLISHED."""
        shown: dict[str, str] = {}
        deadline = self._clock.monotonic() + within.total_seconds()
        while self._clock.monotonic() < deadline:
            states = await self._states()
            for name, state in states.items():
                if state and shown.get(name) != state:
                    shown[name] = state
                    self._printer.say(f"{_after(self._clock.now() - due)}  {name:<10} {state}")
            # Drafts and Queue learn of the end by separate events, in any order.
            if states["draft"] in ENDED and states["slot"] in ENDED:
                return states["draft"] == "PUBLISHED"
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _states(self) -> dict[str, str]:
        slots = await self._queue.ListQueueSlots(
            queue_service_pb2.ListQueueSlotsRequest(organization_id=ORGANIZATION, draft_id=DRAFT)
        )
        jobs = await self._publisher.ListPostJobs(
            publisher_service_pb2.ListPostJobsRequest(organization_id=ORGANIZATION, draft_id=DRAFT)
        )
        draft = await self._drafts.GetDraft(
            drafts_service_pb2.GetDraftRequest(organization_id=ORGANIZATION, draft_id=DRAFT)
        )
        return {
            "slot": _names(
                queue_slot_pb2.QueueSlotState, "QUEUE_SLOT_STATE_", [slot.state for slot in slots.queue_slots]
            ),
            "post job": _names(post_job_pb2.PostJobState, "POST_JOB_STATE_", [job.state for job in jobs.post_jobs]),
            "draft": _names(draft_pb2.DraftState, "DRAFT_STATE_", [draft.draft.state]),
        }


def _verdict(stack: Stack, printer: Printer, due: datetime, published: bool) -> int:
    effects = stack.sandbox.effects()
    if not published or len(effects) != 1:
        printer.say(f"FAILED: the draft is not PUBLISHED in time; the provider has {len(effects)} posts")
        for service in stack.targets:
            printer.say(f"the last lines of {service}:")
            for line in stack.output(service)[-10:]:
                printer.line(service, line)
        return 1
    lateness = datetime.fromisoformat(effects[0]["time"]) - due
    printer.say(f"PUBLISHED: the provider got the post {_after(lateness).strip()} after its time, once")
    return 0


def _schedule() -> account_schedule_pb2.AccountSchedule:
    return account_schedule_pb2.AccountSchedule(
        social_account_id=ACCOUNT,
        name="Monday mornings",
        time_zone="Europe/Berlin",
        weekly_slots=[account_schedule_pb2.WeeklySlot(day_of_week=account_schedule_pb2.DAY_OF_WEEK_MONDAY, hour=9)],
        enabled=True,
    )


def _after(time: timedelta) -> str:
    return f"{time / timedelta(milliseconds=1):+10,.1f} ms"


def _names(kind: EnumTypeWrapper, prefix: str, states: Sequence[int]) -> str:
    return ", ".join(kind.Name(state).removeprefix(prefix) for state in states)
