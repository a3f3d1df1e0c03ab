"""What a stream says about itself, for the relay that must know whether it still has what it acknowledged."""

from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from servicekit.bus.streams import StreamSpec, ensure_stream


class StreamView:
    """Given by its specification, a stream that has vanished is made anew; given by name, it is waited for."""

    def __init__(self, js: JetStreamContext, stream: StreamSpec | str) -> None:
        self._js = js
        self._stream = stream
        self._name = stream if isinstance(stream, str) else stream.name

    async def created(self) -> datetime:
        """When it was made; a stream with another time is another stream."""
        if isinstance(self._stream, str):
            created = (await self._js.stream_info(self._stream)).created
        else:
            created = (await ensure_stream(self._js, self._stream)).created
        assert created is not None
        return created

    async def payload(self, sequence: int) -> bytes | None:
        try:
            return (await self._js.get_msg(self._name, sequence)).data
        except NotFoundError:
            return None
