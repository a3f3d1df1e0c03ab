"""What a stream says about itself, for the relay that must know whether it still has what it acknowledged."""

from dataclasses import dataclass
from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from servicekit.bus.streams import StreamSpec, ensure_stream


@dataclass(frozen=True, slots=True)
class StreamLook:
    """When the stream was made, and the first sequence that its limits have not discarded."""

    created: datetime
    first_sequence: int


class StreamView:
    def __init__(self, js: JetStreamContext, spec: StreamSpec) -> None:
        self._js = js
        self._spec = spec

    async def look(self) -> StreamLook:
        """Makes the stream when it is absent."""
        found = await ensure_stream(self._js, self._spec)
        assert found.created is not None
        return StreamLook(found.created, found.state.first_seq)

    async def payload(self, sequence: int) -> bytes | None:
        try:
            return (await self._js.get_msg(self._spec.name, sequence)).data
        except NotFoundError:
            return None
