"""Measures how late posts are beside a backlog of one busy account, and without it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import nats

from benchmarks import lateness, seed
from benchmarks.result import Result, percentile
from devstack.stack import Stack
from postflow.queue.v1 import publish_command_pb2
from postflow.target.v1 import target_pb2
from publisher_service.domain.post_job import Target, job_id
from topology import publish_subject

_BUSY = "busy-account"
_SECONDS_PER_SEND = 0.05
_PER_SECOND = 20


async def measure(stack: Stack, seeder: seed.Seeder, *, backlog: int, seconds: int) -> list[Result]:
    await stack.sandbox.faults({"fault": "slow", "seconds": _SECONDS_PER_SEND, "account": _BUSY})
    # The first organization has some of the measured posts as well.
    busy = of_account(seed.posts(backlog, "busy"), "org-0", _BUSY)
    await seeder.accounts(busy[:1])
    alone = await lateness.late_by(stack, await _scheduled(stack, seeder, "alone", seconds))
    due = await _scheduled(stack, seeder, "beside", seconds)
    # The backlog comes due after the first posts that are measured.
    middle = min(due.values()) + timedelta(seconds=seconds / 5)
    await seeder.jobs(busy, middle)
    await command(stack, busy, middle)
    beside = await lateness.late_by(stack, due)
    return [
        Result(name="lateness p99, nothing else due", value=_p99(alone), unit="ms"),
        Result(
            name=f"lateness p99 beside {backlog:,} due posts of one account",
            value=_p99(beside),
            unit="ms",
            baseline=_p99(alone),
            note="nothing else due",
        ),
        Result(
            name="lateness p99, the difference",
            value=_p99(beside) - _p99(alone),
            unit="ms",
            baseline=100,
            note="target, at most",
        ),
        Result(name=f"lateness max beside {backlog:,}", value=max(beside), unit="ms"),
    ]


def of_account(posts: Sequence[seed.Post], organization_id: str, account_id: str) -> list[seed.Post]:
    """Returns these posts as posts of one account."""
    target = Target(social_account_id=account_id, channel="facebook")
    return [
        replace(
            post,
            organization_id=organization_id,
            account_id=account_id,
            job_id=job_id(organization_id, post.draft_id, target),
        )
        for post in posts
    ]


async def command(stack: Stack, posts: Sequence[seed.Post], due: datetime) -> None:
    """Sends commands to the stream directly: Queue would not hand out so many of one account."""
    assert stack.nats is not None
    client = await nats.connect(stack.nats.url)
    stream = client.jetstream()
    answers = []
    for post in posts:
        message = publish_command_pb2.PublishCommand(
            organization_id=post.organization_id,
            slot_id=post.slot_id,
            slot_revision=1,
            emission=1,
            draft_id=post.draft_id,
            target=target_pb2.Target(social_account_id=post.account_id, channel="facebook"),
            content_revision=1,
            max_attempts=5,
            schedule_time=due,
            not_after=due + timedelta(days=1),
        )
        subject = publish_subject(post.organization_id, post.account_id)
        answers.append(await stream.publish_async(subject, message.SerializeToString()))
    for answer in answers:
        await answer
    await client.close()


async def _scheduled(stack: Stack, seeder: seed.Seeder, prefix: str, seconds: int) -> dict[str, datetime]:
    """Schedules posts at a steady rate, one account each."""
    wanted = seed.posts(_PER_SECOND * seconds, prefix)
    await seeder.accounts(wanted)
    return await lateness.scheduled_ahead(stack, wanted, prefix, per_second=_PER_SECOND)


def _p99(late: Sequence[float]) -> float:
    return percentile(late, 0.99)
