import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType
from nats.js.errors import APIError, BadRequestError, NotFoundError

from devstack.nats import EmbeddedNats
from servicekit.bus.connection import connect
from servicekit.bus.stream_view import StreamLook, StreamView
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_consumer, ensure_stream
from topology import EVENTS, PARTITIONS, PUBLISH, event_consumer, publish_consumers, publish_subject

STREAM = StreamSpec(name="THINGS", subjects=("things.>",), work_queue=False, max_age=timedelta(days=1))
WORK = StreamSpec(name="WORK", subjects=("work.>",), work_queue=True, max_age=timedelta(days=1))


@pytest.fixture
async def js(own_connection: Client) -> JetStreamContext:
    return own_connection.jetstream()


@pytest.fixture
async def other_js(fresh_nats: EmbeddedNats) -> AsyncIterator[JetStreamContext]:
    client = Client()
    await connect(client, fresh_nats.url, name="other")
    yield client.jetstream()
    await client.close()


def _consumer(*filters: str, durable: str = "reader", stream: str = "THINGS") -> ConsumerSpec:
    return ConsumerSpec(stream=stream, durable=durable, filter_subjects=filters)


async def test_a_stream_is_made_as_declared(js: JetStreamContext) -> None:
    await ensure_stream(js, WORK)
    config = (await js.stream_info("WORK")).config
    assert config.retention == RetentionPolicy.WORK_QUEUE
    assert config.storage == StorageType.FILE
    assert config.discard == DiscardPolicy.NEW
    assert config.max_age == timedelta(days=1).total_seconds()
    assert config.duplicate_window == 120
    assert config.deny_purge


async def test_ensuring_again_changes_nothing(js: JetStreamContext) -> None:
    first = await ensure_stream(js, STREAM)
    await js.publish("things.a", b"")
    second = await ensure_stream(js, STREAM)
    assert second.created == first.created
    assert second.state.messages == 1


@pytest.mark.parametrize(
    "changed",
    [
        replace(STREAM, subjects=("things.>", "more.>")),
        replace(STREAM, max_age=timedelta(hours=2)),
        replace(STREAM, max_bytes=1_000_000),
        replace(STREAM, duplicate_window=timedelta(seconds=10)),
    ],
)
async def test_a_changed_setting_is_brought_up_to_date(js: JetStreamContext, changed: StreamSpec) -> None:
    made = await ensure_stream(js, STREAM)
    updated = await ensure_stream(js, changed)
    assert updated.created == made.created
    assert (await ensure_stream(js, changed)).config == updated.config
    assert updated.config != made.config


async def test_a_change_that_is_impossible_is_refused(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    with pytest.raises(APIError):
        await ensure_stream(js, replace(STREAM, work_queue=True))


async def test_two_processes_may_ensure_at_once(js: JetStreamContext, other_js: JetStreamContext) -> None:
    async with asyncio.TaskGroup() as group:
        for each in (js, other_js) * 5:
            group.create_task(ensure_stream(each, STREAM))
    async with asyncio.TaskGroup() as group:
        for each in (js, other_js) * 5:
            group.create_task(ensure_consumer(each, _consumer("things.a", "things.b")))
    assert (await js.stream_info("THINGS")).state.consumer_count == 1


async def test_a_consumer_never_gives_up_on_a_message(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.>"))
    config = (await js.consumer_info("THINGS", "reader")).config
    assert config.max_deliver == -1
    assert not config.backoff, "it would shift every delayed redelivery"
    assert config.ack_wait is not None
    assert config.ack_wait <= 30


async def test_a_consumer_keeps_its_place_when_its_filters_change(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.a"))
    for subject in ("things.a", "things.b"):
        await js.publish(subject, b"")
    subscription = await js.pull_subscribe_bind("reader", "THINGS")
    await (await subscription.fetch(1))[0].ack_sync()

    await ensure_consumer(js, _consumer("things.a", "things.b"))
    info = await js.consumer_info("THINGS", "reader")
    assert info.config.filter_subjects == ["things.a", "things.b"]
    assert info.num_pending == 1

    await ensure_consumer(js, _consumer("things.b"))
    assert (await js.consumer_info("THINGS", "reader")).config.filter_subject == "things.b"


async def test_a_consumer_keeps_its_place_when_its_patience_changes(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    patient = replace(_consumer("things.>"), ack_wait=timedelta(minutes=1))
    await ensure_consumer(js, patient)
    for subject in ("things.a", "things.b"):
        await js.publish(subject, b"")
    subscription = await js.pull_subscribe_bind("reader", "THINGS")
    acknowledged, forgotten = await subscription.fetch(2)
    await acknowledged.ack_sync()

    await ensure_consumer(js, replace(patient, ack_wait=timedelta(milliseconds=200)))
    info = await js.consumer_info("THINGS", "reader")
    assert (info.config.ack_wait, info.num_pending, info.num_ack_pending) == (0.2, 0, 1)
    (again,) = await subscription.fetch(1, timeout=20)
    assert (again.subject, again.metadata.num_delivered) == (forgotten.subject, 2)


async def test_what_is_announced_to_a_service_that_dies_comes_again_within_seconds(js: JetStreamContext) -> None:
    await ensure_stream(js, EVENTS)
    for service in ("schedule", "queue", "drafts", "publisher"):
        await ensure_consumer(js, event_consumer(service, "queue"))
        ack_wait = (await js.consumer_info("EVENTS", f"{service}-events")).config.ack_wait
        assert ack_wait is not None
        assert 3 <= ack_wait <= 5, "a moment of waiting for the processor is no death"


async def test_ensuring_a_consumer_again_changes_nothing(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    for filters in (("things.a",), ("things.b", "things.a")):
        await ensure_consumer(js, _consumer(*filters))
        before = await js.consumer_info("THINGS", "reader")
        await ensure_consumer(js, _consumer(*filters))
        assert (await js.consumer_info("THINGS", "reader")).config == before.config


async def test_a_consumer_is_made_anew_with_its_stream(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.>"))
    await js.delete_stream("THINGS")
    with pytest.raises(NotFoundError):
        await ensure_consumer(js, _consumer("things.>"))
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.>"))


async def test_consumers_of_a_work_queue_may_not_overlap(js: JetStreamContext) -> None:
    await ensure_stream(js, WORK)
    await ensure_consumer(js, _consumer("work.>", stream="WORK", durable="one"))
    with pytest.raises(BadRequestError):
        await ensure_consumer(js, _consumer("work.a", stream="WORK", durable="two"))
    assert [info.name for info in await js.consumers_info("WORK")] == ["one"]


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (4, 6), (2, 64)])
async def test_another_number_of_publishers_takes_over_the_work_queue(
    js: JetStreamContext, before: int, after: int
) -> None:
    await ensure_stream(js, PUBLISH)
    for spec in publish_consumers(before):
        await ensure_consumer(js, spec)
    subjects = {publish_subject("org", f"account-{number}") for number in range(500)}
    assert len(subjects) == PARTITIONS
    for subject in subjects:
        await js.publish(subject, b"")

    for spec in publish_consumers(after):
        await ensure_consumer(js, spec)

    infos = await js.consumers_info("PUBLISH")
    assert {info.name for info in infos} == {spec.durable for spec in publish_consumers(after)}
    assert sum(info.num_pending or 0 for info in infos) == PARTITIONS, "every command has a consumer again"


async def test_durables_of_another_layout_stay_unless_told_otherwise(js: JetStreamContext) -> None:
    await ensure_stream(js, PUBLISH)
    (single,) = publish_consumers(1)
    await ensure_consumer(js, single)
    with pytest.raises(BadRequestError):
        await ensure_consumer(js, publish_consumers(2)[0], evict=False)
    assert [info.name for info in await js.consumers_info("PUBLISH")] == [single.durable]


async def test_the_streams_of_the_product_can_be_made(js: JetStreamContext) -> None:
    for stream in (EVENTS, PUBLISH):
        await ensure_stream(js, stream)
    await ensure_consumer(js, event_consumer("drafts", "publisher", "schedule", "queue"))
    await ensure_consumer(js, event_consumer("queue", "publisher"))
    await js.publish("events.publisher.org.post_job", b"")
    await js.publish("events.drafts.org.draft", b"")
    infos = {info.name: info.num_pending for info in await js.consumers_info("EVENTS")}
    assert infos == {"drafts-events": 1, "queue-events": 1}


async def test_a_view_shows_messages_and_the_age_of_the_stream(js: JetStreamContext) -> None:
    made = await ensure_stream(js, STREAM)
    view = StreamView(js, STREAM)
    await js.publish("things.a", b"content")
    assert made.created
    assert await view.look() == StreamLook(made.created, 1)
    assert await view.payload(1) == b"content"
    assert await view.payload(2) is None


async def test_a_view_makes_a_missing_stream(js: JetStreamContext) -> None:
    view = StreamView(js, STREAM)
    created = (await view.look()).created
    await js.delete_stream("THINGS")
    assert (await view.look()).created > created
