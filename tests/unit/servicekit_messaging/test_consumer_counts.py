"""Counters of the consumer, in a process of its own, since a process has one meter provider for good."""

import json
import subprocess
import sys

PROGRAM = """
import json
from typing import Any, cast

from google.protobuf.duration_pb2 import Duration
from nats.aio.client import Client
from nats.aio.msg import Msg
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))

from postflow.bus.v1 import bus_pb2
from servicekit.messaging.consumer import EventConsumer, Route
from servicekit.bus.delivery import Answers, Delivery
from servicekit.bus.streams import ConsumerSpec

nothing = cast(Any, None)
client = Client()
consumer = EventConsumer(
    connection=client,
    spec=ConsumerSpec(stream="EVENTS", durable="test-events", filter_subjects=("events.>",)),
    routes=[Route(message=Duration, apply=nothing)],
    database=nothing, clock=nothing, dead_letters=nothing, ensure_stream=nothing,
)
known = bus_pb2.Event(id="1", organization_id="o", type="google.protobuf.Duration")
unknown = bus_pb2.Event(id="2", organization_id="o", type="postflow.future.v1.SomethingNew")
payload = bus_pb2.Envelope(events=[known, unknown, unknown]).SerializeToString()
letter = consumer._read(Delivery(Answers(client), Msg(client, subject="events.a", reply="", data=payload)))
assert len(letter.events) == 1 and not letter.unreadable

for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            if metric.name == "postflow.events.ignored":
                print(json.dumps([[dict(point.attributes), point.value] for point in metric.data.data_points]))
"""


def test_unknown_types_are_counted_by_name() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == [
        [{"consumer": "test-events", "type": "postflow.future.v1.SomethingNew"}, 2],
    ]
