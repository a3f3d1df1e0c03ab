"""WatchPostJobs on a whole process: first what has not ended, then every change, and nothing is lost between two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devstack.servers.nats import EmbeddedNats
from postflow.publisher.v1 import post_job_pb2
from postflow.publisher.v1.publisher_service_pb2 import WatchPostJobsRequest, WatchPostJobsResponse
from servicekit.faults import Fault
from servicekit.rpc import calling
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import ORGANIZATION, Rig, Start
from topology import EVENTS

PENDING, PUBLISHED = post_job_pb2.POST_JOB_STATE_PENDING, post_job_pb2.POST_JOB_STATE_PUBLISHED


class Watcher:
    """A client that reads a watch and keeps the newest of each job."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.jobs: dict[str, post_job_pb2.PostJob] = {}
        self.is_caught_up = False
        self.token = ""

    async def read(self) -> WatchPostJobsResponse:
        async with asyncio.timeout(20):
            message = await self.call.read()
        assert isinstance(message, WatchPostJobsResponse), "the watch has ended"
        if message.HasField("post_job"):
            known = self.jobs.get(message.post_job.draft_id)
            assert known is None or known.version <= message.post_job.version
            self.jobs[message.post_job.draft_id] = message.post_job
        self.is_caught_up |= message.is_caught_up
        self.token = message.resume_token
        return message

    async def caught_up(self) -> None:
        while not self.is_caught_up:
            await self.read()

    async def until(self, draft: str, state: int) -> None:
        while draft not in self.jobs or self.jobs[draft].state != state:
            await self.read()


@asynccontextmanager
async def watching(rig: Rig, token: str = "", **fields: str) -> AsyncIterator[Watcher]:
    named = {"organization_id": ORGANIZATION} | fields
    call = rig.publisher.WatchPostJobs(WatchPostJobsRequest(resume_token=token, **named))
    try:
        yield Watcher(call)
    finally:
        call.cancel()


async def refusal(rig: Rig, token: str = "", **fields: str) -> Fault:
    async with watching(rig, token, **fields) as watcher:
        return await the_end(watcher)


async def the_end(watcher: Watcher) -> Fault:
    with pytest.raises(Fault) as ended, calling():
        await read_on(watcher)
    return ended.value


async def read_on(watcher: Watcher) -> None:
    while True:
        await watcher.read()


async def saved(rig: Rig, *drafts: str, account: str = "page") -> None:
    """Waits until the drafts have post jobs."""
    for draft in drafts:
        await rig.save_draft(draft, account)
    for draft in drafts:
        await rig.in_state("PENDING", draft, account)


async def test_what_has_not_ended_comes_first_and_then_each_change(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await saved(rig, "d1", "d2", "d3")
        await rig.go("d3")
        await rig.in_state("PUBLISHED", "d3")
        async with watching(rig) as watcher:
            await watcher.caught_up()
            assert {draft: job.state for draft, job in watcher.jobs.items()} == {"d1": PENDING, "d2": PENDING}
            await rig.go("d1")
            await watcher.until("d1", PUBLISHED)
            await rig.save_draft("d4")
            await watcher.until("d4", PENDING)
        published = await rig.job("d1")
        assert (watcher.jobs["d1"].version, watcher.jobs["d1"].id) == (published.version, published.id)


async def test_the_first_jobs_come_in_pages(start: Start) -> None:
    async with start() as rig:
        drafts = [f"d{number}" for number in range(230)]
        await saved(rig, *drafts)
        async with watching(rig) as watcher:
            for _ in range(150):
                await watcher.read()
            assert not watcher.is_caught_up
        await rig.save_draft("late")
        async with watching(rig, watcher.token) as again:
            await again.caught_up()
            assert watcher.jobs.keys() | again.jobs.keys() == set(drafts)
            assert len(again.jobs) == 80
            await again.until("late", PENDING)


async def test_only_the_draft_or_the_account_that_is_asked_for_is_sent(start: Start) -> None:
    async with start() as rig:
        await saved(rig, "d1", "d2", account="page")
        await saved(rig, "d3", account="shop")
        fields: list[tuple[dict[str, str], set[str]]] = [
            ({"draft_id": "d1"}, {"d1"}),
            ({"social_account_id": "page"}, {"d1", "d2"}),
            ({"draft_id": "d3", "social_account_id": "shop"}, {"d3"}),
            ({"draft_id": "d3", "social_account_id": "page"}, set()),
            ({"organization_id": "umbrella"}, set()),
        ]
        for named, drafts in fields:
            async with watching(rig, **named) as watcher:
                await watcher.caught_up()
                assert watcher.jobs.keys() == drafts
        async with watching(rig, social_account_id="page") as watcher:
            await watcher.caught_up()
            await saved(rig, "d4", account="shop")
            await saved(rig, "d5", account="page")
            await watcher.until("d5", PENDING)
            assert "d4" not in watcher.jobs


async def test_a_watch_goes_on_after_its_token_at_another_replica(start: Start) -> None:
    async with start() as rig, start() as other:
        await rig.connect()
        await saved(rig, "d1")
        async with watching(rig) as watcher:
            await watcher.caught_up()
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        async with watching(other, watcher.token) as again:
            await again.until("d1", PUBLISHED)
            await saved(rig, "d2")
            await again.until("d2", PENDING)
        async with watching(rig, again.token) as third:
            await saved(other, "d3")
            await third.until("d3", PENDING)
            assert "d1" not in third.jobs


async def test_a_slow_client_gets_the_newest_state(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await saved(rig, "d1")
        async with watching(rig) as watcher:
            await watcher.caught_up()
            for revision in range(2, 40):
                await rig.save_draft("d1", "page", revision=revision)
            await rig.go("d1", revision=39)
            await rig.in_state("PUBLISHED", "d1")
            await watcher.until("d1", PUBLISHED)
            assert watcher.jobs["d1"].content_revision == 39


async def test_a_restart_of_the_stream_loses_nothing(start: Start, fresh_nats: EmbeddedNats) -> None:
    async with start() as rig:
        await saved(rig, "d1")
        async with watching(rig) as watcher:
            await watcher.caught_up()
            await fresh_nats.restart()
            await saved(rig, "d2")
            await watcher.until("d2", PENDING)


async def test_a_token_of_another_stream_or_request_is_refused(start: Start, fresh_nats: EmbeddedNats) -> None:
    async with start() as rig:
        await saved(rig, "d1")
        async with watching(rig) as watcher:
            await watcher.caught_up()
            assert (await refusal(rig, watcher.token, draft_id="d1")).reason == "INVALID_FIELD"
            assert (await refusal(rig, "nonsense")).reason == "INVALID_FIELD"
            await fresh_nats.kill()
            await fresh_nats.wipe()
            await fresh_nats.start()
            assert (await the_end(watcher)).reason == "RESUME_TOKEN_EXPIRED"

        async def expired() -> bool:
            return (await refusal(rig, watcher.token)).reason == "RESUME_TOKEN_EXPIRED"

        await eventually(expired, within=20)
        async with watching(rig) as again:
            await again.caught_up()
            assert again.jobs.keys() == {"d1"}


async def test_an_organization_has_a_share_of_the_watchers(start: Start) -> None:
    async with start(watchers=4) as rig:
        async with watching(rig) as first, watching(rig) as second:
            await first.caught_up()
            await second.caught_up()
            assert (await refusal(rig)).reason == "TOO_MANY_WATCHERS"
            async with watching(rig, organization_id="umbrella") as foreign:
                await foreign.caught_up()

        async def is_free() -> bool:
            consumers = await rig.client.jetstream().consumers_info(EVENTS.name)
            return all(each.config.durable_name for each in consumers)

        await eventually(is_free, within=10)
        async with watching(rig) as again:
            await again.caught_up()
