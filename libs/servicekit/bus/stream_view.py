"""What a stream says about itself, for the relay that must know whether it still has what it acknowledged."""

from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from servicekit.bus.streams import StreamSpec, ensure_stream


class StreamView:
    def __init__(self, js: JetStreamContext, spec: StreamSpec) -> None:
        self._js = js
        self._spec = spec

    async def created(self) -> datetime:
        """When it was made, perhaps just now; a stream with another time is another stream."""
        created = (await ensure_stream(self._js, self._spec)).created
        assert created is not None
        return created

    async def payload(self, sequence: int) -> bytes | None:
        try:
            return (await self._js.get_msg(self._spec.name, sequence)).data
        except NotFoundError:
            return None
