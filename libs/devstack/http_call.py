"""One HTTP request on a connection of its own, for control of the sandbox provider and for tests.

They need no more. While aiohttp was installed beside us, nats-py imported it, for WebSockets: 8 MB in every service.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_SECONDS = 30.0
_NOTHING: Mapping[str, str] = {}


class NoAnswer(ConnectionError):
    """The connection ended before the answer did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Headers by their names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


async def http_call(
    method: str, url: str, *, body: bytes = b"", headers: Mapping[str, str] = _NOTHING, within: float = _SECONDS
) -> Answer:
    """Makes one request and never repeats it. Raises a ConnectionError if there is no complete answer."""
    place = urlsplit(url)
    async with asyncio.timeout(within):
        reader, writer = await asyncio.open_connection(place.hostname, place.port or 80)
        try:
            target = (place.path or "/") + (f"?{place.query}" if place.query else "")
            own = {"Host": place.netloc, "Content-Length": str(len(body)), "Connection": "close"}
            lines = [
                f"{method} {target} HTTP/1.1",
                *(f"{name}: {value}" for name, value in (own | {**headers}).items()),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            return await _answer(reader)
        except asyncio.IncompleteReadError as error:
            raise NoAnswer(f"{method} {url}: the connection ended before the answer did") from error
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> Answer:
    first, *others = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in others)}
    length = headers.get("content-length")
    body = await (reader.read() if length is None else reader.readexactly(int(length)))
    return Answer(status=int(first.split(" ", 2)[1]), headers=headers, body=body)
