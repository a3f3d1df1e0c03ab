"""Reads a stream, for the relay, which must know whether the stream still has what it acknowledged."""

from dataclasses import dataclass
from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from servicekit.bus.streams import StreamSpec, ensure_stream


@dataclass(frozen=True, slots=True)
class StreamLook:
    """The creation time of the stream, and the first sequence that its limits have not discarded."""

    created: datetime
    first_sequence: int


class StreamView:
    def __init__(self, js: JetStreamContext, spec: StreamSpec) -> None:
        self._js = js
        self._spec = spec

    async def look(self) -> StreamLook:
        """Looks at the stream, creating it if it is absent."""
        found = await ensure_stream(self._js, self._spec)
        assert found.created is not None
        return StreamLook(found.created, found.state.first_seq)

    async def payload(self, sequence: int) -> bytes | None:
        try:
            return (await self._js.get_msg(self._spec.name, sequence)).data
        except NotFoundError:
            return None
