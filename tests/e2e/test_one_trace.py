"""Follows one post through all four services, composed in one loop with one in-memory exporter of spans."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import drafts_service.main
import drafts_service.settings
import publisher_service.main
import publisher_service.settings
import queue_service.main
import queue_service.settings
import schedule_service.main
import schedule_service.settings
from devstack.sandbox.provider import Sandbox
from devstack.servers.nats import EmbeddedNats
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.post_job_pb2 import PostJob
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, AccountSchedule, WeeklySlot
from servicekit.clock import SystemClock
from servicekit.run import settings
from servicekit.run.process import Process, serve
from servicekit.run.readers import WithHistograms
from testkit.eventually import eventually
from testkit.spans import recorded_spans
from testkit.stack.tenant import Clients, Tenant

ORGANIZATION = "traced"
PUBLISHED_FOLLOWERS = ("queue-events", "drafts-events")
LATENESS = "postflow.publish.lateness"
KEY = base64.b64encode(bytes(32)).decode()
SERVICES: Mapping[str, tuple[type[Any], Callable[[Any], Awaitable[Process]]]] = {
    "schedule": (schedule_service.settings.Settings, schedule_service.main.compose),
    "publisher": (publisher_service.settings.Settings, publisher_service.main.compose),
    "drafts": (drafts_service.settings.Settings, drafts_service.main.compose),
    "queue": (queue_service.settings.Settings, queue_service.main.compose),
}

_tracer = trace.get_tracer("test")


class InMemoryReader(WithHistograms, InMemoryMetricReader):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """The traces and measurements of a post that has gone out."""

    spans: list[ReadableSpan]
    caller: int
    """The trace id of all calls of the client."""
    job: PostJob
    metrics: Mapping[str, list[Any]]
    """Data points by the name of the metric."""
    lateness: int
    """How many posts were measured; other tests of this process may have sent some, too."""

    def named(self, *parts: str) -> list[ReadableSpan]:
        return [span for span in self.spans if all(part in span.name for part in parts)]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as made:
        yield made


@pytest.fixture
def reader() -> InMemoryReader:
    """Makes the session's only meter provider, which takes its readers when it is made."""
    made = InMemoryReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[made], shutdown_on_exit=False))
    return made


@pytest.fixture
async def clients(
    service_database: Callable[[str], Awaitable[str]],
    fresh_nats: EmbeddedNats,
    sandbox: Sandbox,
    free_port: Callable[[], int],
) -> AsyncIterator[Clients]:
    targets = {service: f"127.0.0.1:{free_port()}" for service in SERVICES}
    environment = {
        "POSTFLOW_NATS_URL": fresh_nats.url,
        "POSTFLOW_PUBLISHER_SANDBOX_URL": sandbox.url,
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEY": KEY,
        **{f"POSTFLOW_{service.upper()}_TARGET": target for service, target in targets.items()},
    }
    async with AsyncExitStack() as exits:
        group = await exits.enter_async_context(asyncio.TaskGroup())
        stop = asyncio.Event()
        exits.callback(stop.set)
        for service, (kind, compose) in SERVICES.items():
            own = {
                f"POSTFLOW_{service.upper()}_DATABASE_URL": await service_database(service),
                f"POSTFLOW_{service.upper()}_LISTEN": targets[service],
            }
            process = await compose(settings.load(kind, service, environment | own))
            ready = asyncio.Event()
            group.create_task(serve(process, stop, ready))
            await ready.wait()
        made = Clients(targets)
        exits.push_async_callback(made.close)
        await made.ready()
        yield made


@pytest.fixture
async def journey(exporter: InMemorySpanExporter, reader: InMemoryMetricReader, clients: Clients) -> Journey:
    tenant = Tenant(clients, ORGANIZATION)
    before = _count(_points(reader), LATENESS)
    with _tracer.start_as_current_span("caller") as caller:
        await _use_everything(tenant)
    await tenant.until("post", DRAFT_STATE_PUBLISHED)

    async def settled() -> bool:
        (slot,) = await tenant.slots("post")
        return slot.state == QUEUE_SLOT_STATE_PUBLISHED

    await eventually(settled)
    await eventually(lambda: _is_followed(exporter.get_finished_spans()))
    (job,) = await tenant.jobs("post")
    measured = _points(reader)
    return Journey(
        spans=list(exporter.get_finished_spans()),
        caller=caller.get_span_context().trace_id,
        job=job,
        metrics=measured,
        lateness=_count(measured, LATENESS) - before,
    )


def _is_followed(spans: Sequence[ReadableSpan]) -> bool:
    """Returns True once the followers' spans have ended, which may be after their effects are visible."""
    published = {(_trace(span), _id(span)) for span in spans if "publish post" in span.name}
    followed = [span.name for span in spans if published & _links(span)]
    return all(any(follower in name for name in followed) for follower in PUBLISHED_FOLLOWERS)


async def _use_everything(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.put_schedule(
        AccountSchedule(
            social_account_id="page",
            time_zone="Europe/Berlin",
            weekly_slots=[WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)],
        )
    )
    await tenant.create("later", "Goes out some Monday")
    await tenant.add_to_queue("later")
    await tenant.change_text("later", "Goes out some other Monday")
    await tenant.create("post", "Follow me")
    await tenant.schedule_at("post", SystemClock().now() + timedelta(seconds=1))


def _points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def _count(points: Mapping[str, list[Any]], name: str) -> int:
    return sum(point.count for point in points.get(name, []))


async def test_a_post_can_be_followed_through_all_services(journey: Journey) -> None:
    _calls_join_the_callers_trace(journey)
    _calls_made_within_calls_join_too(journey)
    _later_work_is_linked_to_its_origin(journey)
    _followers_are_linked_to_what_they_follow(journey)
    _measurements_exist(journey)


def _calls_join_the_callers_trace(journey: Journey) -> None:
    for name in (
        "postflow.publisher.v1.SocialAccountService/ConnectAccount",
        "postflow.schedule.v1.ScheduleService/PutAccountSchedule",
        "postflow.drafts.v1.DraftsService/CreateDraft",
        "postflow.drafts.v1.DraftsService/ApproveDraft",
        "postflow.queue.v1.QueueService/AddToQueue",
        "postflow.queue.v1.QueueService/ScheduleAt",
    ):
        for span in journey.named(name):
            assert (span.kind, _trace(span)) == (SpanKind.SERVER, journey.caller), name
            assert _attribute(span, "postflow.organization_id") == ORGANIZATION
            assert _attribute(span, "postflow.request_id")
        assert journey.named(name), name


def _calls_made_within_calls_join_too(journey: Journey) -> None:
    """Checks Queue's call to Schedule for times, and Drafts' call to Publisher to withdraw a text."""
    for inner, outer in (("FindSlotTimes", "AddToQueue"), ("WithdrawContent", "UpdateDraft")):
        (caller,) = journey.named(outer)
        called = journey.named(inner)
        assert called
        for span in called:
            assert _trace(span) == journey.caller
            assert span.parent
            assert span.parent.span_id == _id(caller)


def _later_work_is_linked_to_its_origin(journey: Journey) -> None:
    scheduled = journey.one("QueueService/ScheduleAt")
    for name in ("queue hand over", "publish post"):
        span = journey.one(name)
        assert span.parent is None
        assert _trace(span) != journey.caller
        assert _links(span) == {(journey.caller, _id(scheduled))}
    published = journey.one("publish post")
    assert _attribute(published, "postflow.post_job_id") == journey.job.id
    assert _attribute(published, "postflow.organization_id") == ORGANIZATION
    assert _attribute(published, "postflow.outcome") == "accepted"


def _followers_are_linked_to_what_they_follow(journey: Journey) -> None:
    published = journey.one("publish post")
    for follower in PUBLISHED_FOLLOWERS:
        (span,) = [
            span for span in journey.named(follower, "apply") if (_trace(published), _id(published)) in _links(span)
        ]
        assert span.kind is SpanKind.CONSUMER
        assert span.attributes
        assert span.attributes["messaging.batch.message_count"]
        assert span.attributes["postflow.event_types"] == ("postflow.publisher.v1.PostJobChanged",)
        assert _trace(span) not in {journey.caller, _trace(published)}
    approved = {_id(span) for span in journey.named("DraftsService/ApproveDraft")}
    for follower in ("queue-events", "publisher-events"):
        linked = {span_id for span in journey.named(follower, "apply") for _, span_id in _links(span)}
        assert approved <= linked


def _measurements_exist(journey: Journey) -> None:
    measured = {
        "rpc.server.call.duration": {"rpc.method": "postflow.queue.v1.QueueService/ScheduleAt"},
        "postflow.outbox.age": {},
        "postflow.consumer.pending": {"consumer": "drafts-events"},
        "postflow.events.applied": {"consumer": "queue-events"},
        "postflow.queue.dispatch.lateness": {},
        LATENESS: {},
        "postflow.publish.outcomes": {"outcome": "accepted"},
        "postflow.post_jobs.moving": {"state": "UNKNOWN"},
    }
    for name, attributes in measured.items():
        points = journey.metrics.get(name, [])
        assert any(attributes.items() <= dict(point.attributes).items() for point in points), (name, points)
    assert journey.lateness == 1


def _context(span: ReadableSpan) -> trace.SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def _trace(span: ReadableSpan) -> int:
    return _context(span).trace_id


def _id(span: ReadableSpan) -> int:
    return _context(span).span_id


def _links(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(link.context.trace_id, link.context.span_id) for link in span.links}


def _attribute(span: ReadableSpan, name: str) -> object:
    return (span.attributes or {}).get(name)
