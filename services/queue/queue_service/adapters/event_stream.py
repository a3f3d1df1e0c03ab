"""The stream of events as the repeats of commands see it: whether an answer may still be on its way."""

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from queue_service.domain.stream import Hearing
from servicekit.bus.streams import ConsumerSpec
from servicekit.run import is_transient

_TIMEOUT = 2.0


class EventStream:
    def __init__(self, connection: Client, consumer: ConsumerSpec) -> None:
        """`consumer` is the durable through which Queue hears of its commands."""
        self._connection = connection
        self._consumer = consumer

    async def hearing(self) -> Hearing | None:
        """Returns how far Queue has heard the events; None while that cannot be found out."""
        if not self._connection.is_connected:
            return None
        js = self._connection.jetstream(timeout=_TIMEOUT)
        try:
            # In this order: events stored by then count as unheard until the consumer has nothing left.
            stream = await js.stream_info(self._consumer.stream)
            consumer = await js.consumer_info(self._consumer.stream, self._consumer.durable)
        except NotFoundError:
            return None
        except Exception as error:
            if not is_transient(error):
                raise
            return None
        last = stream.state.last_seq
        if not consumer.num_pending and not consumer.num_ack_pending:
            return Hearing(last, last)
        return Hearing(last, consumer.ack_floor.stream_seq if consumer.ack_floor else 0)
