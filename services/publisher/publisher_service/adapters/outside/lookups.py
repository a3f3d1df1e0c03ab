"""Looks up names that users gave, on threads apart.

libuv looks up two names at a time for the whole process, PostgreSQL and NATS among them, and a lookup cannot be
cancelled: a name whose server hangs, which anyone can set up, would hold them up.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import Final

from publisher_service.adapters.outside.places import Places

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host. Raises OSError if there are none. May block."""

# Resolvers give up after about 20 seconds, and mostly answer within milliseconds.
_THREADS: Final = 16
_SHARE: Final = 4


def resolve(host: str, port: int) -> Sequence[str]:
    return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Lookups:
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._places = Places(_THREADS, share=_SHARE)

    async def addresses(self, organization_id: str, host: str, port: int) -> Sequence[str]:
        """Raises OSError, or Crowded. The caller bounds the wait; the thread keeps its place until it ends."""
        await self._places.take(organization_id)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str] | OSError] = loop.create_future()
        answer.add_done_callback(lambda _: self._places.give_back(organization_id))
        try:
            # A daemon: it must not keep a process from ending.
            Thread(target=partial(self._look_up, host, port, answer), name=f"lookup of {host}", daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            answer.set_result(OSError("no thread"))
        found = await asyncio.shield(answer)
        if isinstance(found, OSError):
            raise found
        return found

    def _look_up(self, host: str, port: int, answer: "asyncio.Future[Sequence[str] | OSError]") -> None:
        found: Sequence[str] | OSError
        try:
            found = self._resolve(host, port)
        except OSError as error:
            found = error
        except UnicodeError:  # getaddrinfo encodes names by itself
            found = OSError("no name")
        try:
            answer.get_loop().call_soon_threadsafe(_answer, answer, found)
        except RuntimeError:
            return  # the loop is closed, and nothing waits


def _answer(answer: "asyncio.Future[Sequence[str] | OSError]", found: Sequence[str] | OSError) -> None:
    if not answer.done():
        answer.set_result(found)
