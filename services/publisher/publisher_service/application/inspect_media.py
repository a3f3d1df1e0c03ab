"""Says what is known of the media that a draft names, and fetches what is not: the files of all URLs at once.

A fetch belongs to nobody who waits for it: it goes on when its callers have no more time, so that a large file is known
when they ask again.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextvars import Context
from datetime import timedelta
from typing import Final

from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.media.refusals import MediaRefused, MediaTrouble
from publisher_service.adapters.postgres.media import find_media, save_media
from publisher_service.domain.media import Inspected, MediaProblem
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

# Somebody who has corrected a file tries it again at once.
_PROBLEMS_LIVE: Final = timedelta(minutes=1)
# One organization has a share of it: so many of its fetches wait for a place, and the others are refused.
_MOST: Final = 1000
_PENDING: Final = MediaProblem(
    reason="MEDIA_PENDING", message="is still being fetched; ask again in a moment", is_transient=True
)
_BUSY: Final = MediaProblem(reason="TOO_BUSY", message="too many files are being fetched right now", is_transient=True)

_Key = tuple[str, bytes]


class InspectMedia:
    """`life` is how long facts are believed before a file is fetched again."""

    def __init__(self, *, database: Database, clock: DatabaseClock, files: MediaFiles, life: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._files = files
        self._life = life
        self._fetches: dict[_Key, asyncio.Task[Inspected]] = {}

    async def __call__(self, organization_id: str, urls: Sequence[str], *, patience: timedelta) -> list[Inspected]:
        """Returns what is known of each URL, in their order. What takes longer than `patience` is MEDIA_PENDING."""
        digests = {url: hashlib.sha256(url.encode(errors="surrogatepass")).digest() for url in urls}
        found: dict[str, Inspected] = {url: each for url in digests if (each := self._refusal(url)) is not None}
        known = await self._known(organization_id, [digests[url] for url in digests if url not in found])
        found |= {url: known[digest] for url, digest in digests.items() if digest in known}
        missing = {url: digest for url, digest in digests.items() if url not in found}
        found |= await self._fetched(organization_id, missing, patience)
        return [found[url] for url in urls]

    async def close(self) -> None:
        fetches = list(self._fetches.values())
        for fetch in fetches:
            fetch.cancel()
        if fetches:
            await asyncio.wait(fetches)

    def _refusal(self, url: str) -> Inspected | None:
        try:
            self._files.shown(url)
        except MediaRefused as refused:
            return refused.problem
        return None

    async def _known(self, organization_id: str, digests: Sequence[bytes]) -> Mapping[bytes, Inspected]:
        if not digests:
            return {}
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            return await find_media(
                connection,
                organization_id,
                digests,
                facts_since=now - self._life,
                problems_since=now - min(self._life, _PROBLEMS_LIVE),
            )

    async def _fetched(
        self, organization_id: str, missing: Mapping[str, bytes], patience: timedelta
    ) -> dict[str, Inspected]:
        fetches = {url: self._fetch(organization_id, url, digest) for url, digest in missing.items()}
        running = {fetch for fetch in fetches.values() if fetch is not None}
        if running:
            await asyncio.wait(running, timeout=patience.total_seconds())
        return {
            url: _BUSY if fetch is None else fetch.result() if fetch.done() else _PENDING
            for url, fetch in fetches.items()
        }

    def _fetch(self, organization_id: str, url: str, digest: bytes) -> asyncio.Task[Inspected] | None:
        """Returns the fetch of a URL, which all who ask for it share; None if there are too many."""
        key = organization_id, digest
        if key not in self._fetches:
            if len(self._fetches) >= _MOST:
                return None
            # Nothing of the first caller's context, as its request id, is that of the others.
            fetch = asyncio.get_running_loop().create_task(
                self._inspect(organization_id, url, digest), context=Context()
            )
            self._fetches[key] = fetch
            fetch.add_done_callback(lambda done: self._end(key, done))
        return self._fetches[key]

    def _end(self, key: _Key, fetch: asyncio.Task[Inspected]) -> None:
        del self._fetches[key]
        if not fetch.cancelled():
            fetch.exception()  # seen, even if nobody waits for it any more

    async def _inspect(self, organization_id: str, url: str, digest: bytes) -> Inspected:
        # Another fetch may have ended since the caller looked.
        known = await self._known(organization_id, [digest])
        if digest in known:
            return known[digest]
        inspected: Inspected
        try:
            async with self._files.open(organization_id, url) as file:
                inspected = file.facts
        except MediaTrouble as trouble:
            inspected = trouble.problem
        if isinstance(inspected, MediaProblem) and inspected.is_transient:
            return inspected
        # One statement that commits by itself: if it is lost, the file is fetched again.
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            await save_media(connection, organization_id, digest, inspected, shown_url=self._files.shown(url), now=now)
        return inspected
