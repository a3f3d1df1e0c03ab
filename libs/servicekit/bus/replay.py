"""Reads a stream again from a time on, without a trace: for those who must catch up with what they have forgotten."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

_BATCH = 200
_PATIENCE = 5.0
_ABANDONED = 30.0  # seconds after which the server deletes a consumer that nobody asks


async def read_again(
    connection: Client, stream: str, subjects: Sequence[str], *, since: datetime | None
) -> AsyncIterator[list[Msg]]:
    """Yields batches of what the stream has had since then, up to what it has now; everything if `since` is None.

    Raises a transient error if the server fails: then the reader begins again.
    """
    js = connection.jetstream(timeout=_PATIENCE)
    info = await js.add_consumer(
        stream,
        ConsumerConfig(
            filter_subjects=list(subjects),
            deliver_policy=DeliverPolicy.ALL if since is None else DeliverPolicy.BY_START_TIME,
            opt_start_time=since,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=_ABANDONED,
        ),
    )
    subscription = await js.pull_subscribe_bind(consumer=info.name, stream=stream)
    left = info.num_pending or 0
    try:
        while left > 0:
            batch = await subscription.fetch(min(left, _BATCH), timeout=_PATIENCE)
            left -= len(batch)
            yield batch
    finally:
        await subscription.unsubscribe()
