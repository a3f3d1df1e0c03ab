"""The addresses of a host, looked up once for all connections that are made within some seconds.

libuv looks up two names at a time, for the whole process. If each connection looked up the name of its provider, many
posts that are due at one moment would wait for each other, and a name server that hangs would hold up PostgreSQL and
NATS, too.
"""

import asyncio
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

_KEPT: Final = timedelta(seconds=10)


class Addresses:
    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._lookup: asyncio.Task[Sequence[str]] | None = None
        self._kept_until = 0.0

    async def get(self) -> Sequence[str]:
        """Returns one or more addresses, in the order in which to try them. Raises OSError if there are none."""
        loop = asyncio.get_running_loop()
        if self._lookup is None or (self._lookup.done() and loop.time() >= self._kept_until):
            self._kept_until = 0.0  # a lookup that fails is not kept
            self._lookup = loop.create_task(self._look_up())
            self._lookup.add_done_callback(_retrieve)
        # It goes on for the others if this caller has no more time.
        return await asyncio.shield(self._lookup)

    def close(self) -> None:
        if self._lookup is not None:
            self._lookup.cancel()

    async def _look_up(self) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        if not found:
            raise OSError(f"{self._host} has no address")
        self._kept_until = loop.time() + _KEPT.total_seconds()
        return [str(address[0]) for *_, address in found]


def _retrieve(lookup: asyncio.Task[Sequence[str]]) -> None:
    """Marks an error as seen, even if nobody waits for the lookup any more."""
    if not lookup.cancelled():
        lookup.exception()
