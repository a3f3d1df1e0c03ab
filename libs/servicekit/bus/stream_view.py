"""What a stream says about itself, for the relay that must know whether it still has what it acknowledged."""

from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError


class StreamView:
    def __init__(self, js: JetStreamContext, name: str) -> None:
        self._js = js
        self._name = name

    async def created(self) -> datetime:
        """When it was made; a stream with another time is another stream."""
        created = (await self._js.stream_info(self._name)).created
        assert created is not None
        return created

    async def payload(self, sequence: int) -> bytes | None:
        try:
            return (await self._js.get_msg(self._name, sequence)).data
        except NotFoundError:
            return None
