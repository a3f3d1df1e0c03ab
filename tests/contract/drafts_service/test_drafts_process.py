"""Runs the whole process, as `main` wires it, on real PostgreSQL and NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import nats
import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from drafts_service.main import compose
from drafts_service.settings import Settings
from postflow.bus.v1.bus_pb2 import Envelope, Event
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceStub
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED, PostJob
from postflow.publisher.v1.publisher_events_pb2 import (
    POST_JOB_EVENT_KIND_SUCCEEDED,
    PostJobChanged,
    SocialAccountDisconnected,
)
from postflow.publisher.v1.social_account_pb2 import SOCIAL_ACCOUNT_STATE_DISCONNECTED, SocialAccount
from postflow.target.v1.target_pb2 import Target
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.run import Secret
from testkit.eventually import eventually
from testkit.processes import running

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

TARGET = Target(social_account_id="account", channel="facebook")


@pytest.fixture
async def drafts(
    database_url: str, fresh_nats: EmbeddedNats, free_port: Callable[[], int]
) -> AsyncIterator[DraftsServiceAsyncStub]:
    settings = Settings(
        listen="127.0.0.1:0",
        metrics_listen="127.0.0.1:0",
        database_url=Secret(database_url),
        nats_url=fresh_nats.url,
        publisher_target=f"127.0.0.1:{free_port()}",
    )
    async with running(await compose(settings)) as channel:
        yield DraftsServiceStub(channel)


@pytest.fixture
async def bus(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    client = await nats.connect(fresh_nats.url)
    yield client
    await client.close()


def succeeded(draft_id: str) -> Event:
    job = PostJob(
        id="job",
        draft_id=draft_id,
        target=TARGET,
        version=3,
        state=POST_JOB_STATE_PUBLISHED,
        publish_time=datetime(2026, 3, 2, 9, 0, tzinfo=UTC),
    )
    changed = PostJobChanged(organization_id="org", kind=POST_JOB_EVENT_KIND_SUCCEEDED, post_job=job)
    return Event(
        id=f"event-{draft_id}",
        type=PostJobChanged.DESCRIPTOR.full_name,
        organization_id="org",
        aggregate_id="job",
        payload=changed.SerializeToString(),
    )


async def test_a_draft_is_announced_and_follows_publishers_events(
    drafts: DraftsServiceAsyncStub, bus: Client, database_url: str
) -> None:
    draft = Draft(content=DraftContent(text="text"), targets=[TARGET])
    await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft_id="draft", draft=draft))
    stream = bus.jetstream()
    subscription = await stream.subscribe("events.drafts.draft", stream="EVENTS")
    message = await subscription.next_msg(timeout=10)
    (event,) = Envelope.FromString(message.data).events
    assert (event.type, event.aggregate_id) == ("postflow.drafts.v1.DraftSaved", "draft")
    assert DraftSaved.FromString(event.payload).draft_id == "draft"

    subject = "events.publisher.org.post_job"  # as earlier releases published it
    await stream.publish(subject, b"\xff\xff not an envelope")
    damaged = succeeded("draft")
    damaged.id, damaged.organization_id = "damaged", "other"
    await stream.publish(subject, Envelope(events=[damaged]).SerializeToString())
    unknown = Event(id="unknown", type="postflow.publisher.v1.NotYetKnown", organization_id="org")
    await stream.publish(subject, Envelope(events=[unknown, succeeded("draft")]).SerializeToString())

    async def published() -> bool:
        answer = await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))
        return answer.draft.state == DRAFT_STATE_PUBLISHED

    assert await eventually(published)
    await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft_id="waits", draft=draft))
    gone = SocialAccountDisconnected(organization_id="org", social_account=SocialAccount(id="account", version=2))
    gone.social_account.state = SOCIAL_ACCOUNT_STATE_DISCONNECTED
    event = Event(id="gone", type=gone.DESCRIPTOR.full_name, organization_id="org", payload=gone.SerializeToString())
    await stream.publish("events.publisher.social_account", Envelope(events=[event]).SerializeToString())

    async def not_connected() -> bool:
        answer = await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="waits"))
        return answer.draft.target_states[0].state_reason == "ACCOUNT_NOT_CONNECTED"

    assert await eventually(not_connected)
    database = Database(database_url, application="test", pool_size=1)
    letters = await DeadLetters(database, DatabaseClock(), Uuid7Source()).list()
    assert {letter.consumer for letter in letters} == {"drafts-events"}
    assert len(letters) == 2
    await database.dispose()
