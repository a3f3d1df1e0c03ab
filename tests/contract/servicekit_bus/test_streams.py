import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import BadRequestError, NotFoundError

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import connect
from servicekit.bus.stream_view import StreamLook, StreamView
from servicekit.bus.streams import ConsumerSpec, StreamSpec, Unfit, ensure_consumer, ensure_stream
from servicekit.run.transient import is_transient
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


async def test_a_stream_is_created_as_declared(js: JetStreamContext) -> None:
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


async def test_settings_of_an_operator_stay(js: JetStreamContext) -> None:
    """Includes settings with which another release would create the stream."""
    await ensure_stream(js, STREAM)
    await _update(
        js,
        "THINGS",
        subjects=["things.>", "of.the.operator"],
        description="operator",
        max_age=_nanoseconds(timedelta(hours=7)),
        max_bytes=50_000_000,
        max_msgs=70_000,
        duplicate_window=_nanoseconds(timedelta(seconds=10)),
        compression="s2",
        metadata={"owner": "platform"},
    )
    before = await _config(js, "THINGS")
    for each in (STREAM, replace(STREAM, max_age=timedelta(days=2), max_bytes=1_000_000, replicas=3)):
        await ensure_stream(js, each)
        assert await _config(js, "THINGS") == before


@pytest.mark.parametrize(
    ("field", "found", "wanted"),
    [
        ("deny_purge", False, True),
        ("discard", "old", "new"),
        ("subjects", ["work.a"], ["work.>"]),
        ("subjects", ["work.a", "other"], ["other", "work.>"]),
    ],
)
async def test_a_setting_that_breaks_a_promise_is_corrected_once(
    js: JetStreamContext, caplog: pytest.LogCaptureFixture, field: str, found: object, wanted: object
) -> None:
    made = StreamConfig(name="WORK", retention=RetentionPolicy.WORK_QUEUE, deny_purge=True, discard=DiscardPolicy.NEW)
    await js.add_stream(
        made.evolve(subjects=["work.>"], max_msgs=77, **({} if field == "subjects" else {field: found}))
    )
    if field == "subjects":
        await _update(js, "WORK", subjects=found)
    before = await _config(js, "WORK")
    for _ in range(2):
        await ensure_stream(js, WORK)
    assert await _config(js, "WORK") == before | {field: wanted}
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert all(json.dumps(word) in record.message for word in (found, wanted))
    assert field in record.message


async def test_a_stream_that_cannot_be_corrected_is_refused(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    with pytest.raises(Unfit, match='stream THINGS is not usable: retention is "limits", must be "workqueue"'):
        await ensure_stream(js, replace(STREAM, work_queue=True))
    assert is_transient(Unfit("")), "a process waits for its operator"


async def _config(js: JetStreamContext, stream: str, consumer: str = "") -> dict[str, Any]:
    """Returns the server's JSON, with fields that the client does not know."""
    subject = f"CONSUMER.INFO.{stream}.{consumer}" if consumer else f"STREAM.INFO.{stream}"
    config: dict[str, Any] = (await js._api_request(f"$JS.API.{subject}"))["config"]
    return config


async def _update(js: JetStreamContext, stream: str, **changes: object) -> None:
    config = await _config(js, stream) | changes
    await js._api_request(f"$JS.API.STREAM.UPDATE.{stream}", json.dumps(config).encode())


async def _update_consumer(js: JetStreamContext, stream: str, consumer: str, **changes: object) -> None:
    config = {**await _config(js, stream, consumer), **changes}
    config = {name: value for name, value in config.items() if value is not None}
    request = json.dumps({"stream_name": stream, "config": config}).encode()
    await js._api_request(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{consumer}", request)


def _nanoseconds(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1e9)


async def test_two_processes_may_ensure_a_stream_concurrently(js: JetStreamContext, other_js: JetStreamContext) -> None:
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
    left = (await js.consumer_info("THINGS", "reader")).config.filter_subjects
    assert left == ["things.a", "things.b"], "an older release does not narrow what a newer one has widened"

    await ensure_consumer(js, _consumer("things.>"))
    assert (await js.consumer_info("THINGS", "reader")).config.filter_subjects == ["things.>"]


async def test_settings_of_an_operator_on_a_consumer_stay(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.a"))
    await _update_consumer(
        js,
        "THINGS",
        "reader",
        description="operator",
        ack_wait=_nanoseconds(timedelta(seconds=3)),
        max_ack_pending=50_000,
        filter_subject="things.>",
        max_batch=20_000,
        max_expires=_nanoseconds(timedelta(minutes=1)),
        metadata={"owner": "platform"},
    )
    before = await _config(js, "THINGS", "reader")
    await ensure_consumer(js, _consumer("things.a"))
    assert await _config(js, "THINGS", "reader") == before


@pytest.mark.parametrize(
    ("field", "found", "wanted"),
    [
        ("max_deliver", 5, -1),
        ("backoff", [1_000_000_000, 2_000_000_000], None),
        ("ack_wait", 90_000_000_000, 30_000_000_000),
        ("max_ack_pending", 100, 20_000),
        ("headers_only", True, None),
        ("max_batch", 100, None),
        ("max_expires", 5_000_000_000, None),
    ],
)
async def test_a_consumer_that_breaks_a_promise_is_corrected_once(
    js: JetStreamContext, caplog: pytest.LogCaptureFixture, field: str, found: object, wanted: object
) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.>"))
    await _update_consumer(js, "THINGS", "reader", **{"description": "operator", field: found, "max_deliver": 5})
    for _ in range(2):
        await ensure_consumer(js, _consumer("things.>"))
    after = await _config(js, "THINGS", "reader")
    assert (after.get(field), after["max_deliver"], after["description"]) == (wanted, -1, "operator")
    (record,) = caplog.records
    assert f"{field} is {json.dumps(found)}, must be {json.dumps(wanted)}" in record.message


async def test_a_consumer_with_another_kind_of_answer_is_refused(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await js.add_consumer("THINGS", ConsumerConfig(durable_name="reader", ack_policy=AckPolicy.ALL))
    with pytest.raises(Unfit, match=r'consumer reader of stream THINGS is not usable: .*ack_policy is "all"'):
        await ensure_consumer(js, _consumer("things.>"))


async def test_a_consumer_has_as_many_replicas_as_its_stream(js: JetStreamContext) -> None:
    await ensure_stream(js, STREAM)
    await ensure_consumer(js, _consumer("things.>"))
    assert (await _config(js, "THINGS", "reader"))["num_replicas"] == 0, "the stream's"


async def test_a_consumer_keeps_its_place_when_its_ack_wait_changes(js: JetStreamContext) -> None:
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


async def test_events_of_a_dead_service_are_redelivered_within_seconds(js: JetStreamContext) -> None:
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


async def test_a_consumer_is_created_again_with_its_stream(js: JetStreamContext) -> None:
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
async def test_another_number_of_durables_takes_over_the_work_queue(
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


async def test_durables_of_another_layout_stay_without_evict(js: JetStreamContext) -> None:
    await ensure_stream(js, PUBLISH)
    (single,) = publish_consumers(1)
    await ensure_consumer(js, single)
    with pytest.raises(BadRequestError):
        await ensure_consumer(js, publish_consumers(2)[0], evict=False)
    assert [info.name for info in await js.consumers_info("PUBLISH")] == [single.durable]


async def test_the_streams_of_the_product_can_be_created(js: JetStreamContext) -> None:
    for stream in (EVENTS, PUBLISH):
        await ensure_stream(js, stream)
    await ensure_consumer(js, event_consumer("drafts", "publisher", "schedule", "queue"))
    await ensure_consumer(js, event_consumer("queue", "publisher"))
    await js.publish("events.publisher.post_job", b"")
    await js.publish("events.drafts.draft", b"")
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


async def test_a_view_creates_a_missing_stream(js: JetStreamContext) -> None:
    view = StreamView(js, STREAM)
    created = (await view.look()).created
    await js.delete_stream("THINGS")
    assert (await view.look()).created > created
