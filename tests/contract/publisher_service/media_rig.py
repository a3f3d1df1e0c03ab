"""A server of media on loopback, and what fetches from it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from publisher_service.adapters.media.fetcher import MediaFetcher, Pace
from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.media.spool import Room, Spool
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.places import Places
from publisher_service.domain.media import MediaCaps, MediaFacts
from tests.contract.publisher_service.scripted_server import ScriptedServer, Wire, scripted

LONG, SHORT = timedelta(seconds=30), timedelta(milliseconds=300)
CANARY = "canary-7f3a"
CAPS = MediaCaps(image=40_000_000, video=40_000_000, document=40_000_000)
ROOM = 100_000_000

Answer = Callable[[Wire], Awaitable[None]]


class MediaRig:
    def __init__(self, server: ScriptedServer, answers: dict[str, Answer], files: MediaFiles, room: Room) -> None:
        self.server = server
        self.answers = answers
        self.files = files
        self.room = room

    def serve(self, name: str, content: bytes, *, head: str = "", status: str = "200 OK") -> str:
        """Has the server answer with this; returns the URL, whose query is a secret."""

        async def answer(wire: Wire) -> None:
            length = "" if "Content-Length" in head or "Transfer-Encoding" in head else len(content)
            length = f"Content-Length: {length}\r\n" if length != "" else ""
            wire.say(f"HTTP/1.1 {status}\r\n{length}{head}\r\n".encode(), content)

        return self.say(name, answer)

    def say(self, name: str, answer: Answer) -> str:
        self.answers[name] = answer
        return self.url(name)

    def redirect(self, name: str, to: str, *, status: str = "302 Found", head: str = "") -> str:
        return self.serve(name, b"", status=status, head=f"Location: {to}\r\n{head}")

    def url(self, name: str) -> str:
        return f"{self.server.url}/{name}?signature={CANARY}"

    async def facts(self, url: str, organization_id: str = "acme") -> MediaFacts:
        async with self.files.open(organization_id, url) as file:
            return file.facts


@asynccontextmanager
async def media_rig(
    folder: Path,
    *,
    caps: MediaCaps = CAPS,
    pace: Pace | None = None,
    places: Places | None = None,
    room: Room | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> AsyncIterator[MediaRig]:
    answers: dict[str, Answer] = {}

    async def serve(wire: Wire) -> None:
        request = await wire.request()
        name = request.split()[1].decode().partition("?")[0].removeprefix("/")
        await answers[name](wire)

    async with scripted(serve) as server:
        found = {"127.0.0.1": ["127.0.0.1"], **(names or {})}
        outside = Outside(
            private_hosts={("127.0.0.1", server.port)}, resolve=lambda host, _port: found[host.removesuffix(".")]
        )
        room = room or Room(ROOM, share=ROOM // 2)
        spool = Spool(room, parent=folder)
        fetcher = MediaFetcher(outside, places or Places(8, share=4), caps=caps, pace=pace or Pace(in_all=LONG))
        files = MediaFiles(fetcher, spool)
        try:
            yield MediaRig(server, answers, files, room)
        finally:
            await files.close()
            await asyncio.sleep(0)


def left(folder: Path) -> list[str]:
    """Names the files that are in the spool's folders."""
    return [str(each.relative_to(folder)) for each in folder.glob("*/*")]
