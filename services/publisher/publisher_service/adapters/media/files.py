"""Gives out the media of posts: files that drafts name by URL, fetched for each use, and compared by their hash."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from publisher_service.adapters.media.fetcher import MediaFetcher
from publisher_service.adapters.media.refusals import MediaChanged, MediaUnavailable
from publisher_service.adapters.media.spool import Spool, SpoolFile, SpoolFull
from publisher_service.domain.media import MediaFacts

_PIECE: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFile:
    """A file on the local disk, while its context lasts."""

    facts: MediaFacts
    path: Path
    file: SpoolFile

    async def pieces(self, *, begin: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yields the bytes from `begin` to `end`, in pieces of 256 KiB at most. Raises MediaUnavailable."""
        stop = self.facts.size if end is None else min(end, self.facts.size)
        for offset in range(begin, stop, _PIECE):
            try:
                piece = await self.file.read(offset, min(_PIECE, stop - offset))
            except SpoolFull:
                raise MediaUnavailable("SPOOL_BROKEN", "cannot be read from the local disk") from None
            yield piece


class MediaFiles:
    def __init__(self, fetcher: MediaFetcher, spool: Spool) -> None:
        self._fetcher = fetcher
        self._spool = spool

    @asynccontextmanager
    async def open(
        self, organization_id: str, url: str, *, expected_sha256: str | None = None
    ) -> AsyncIterator[MediaFile]:
        """Fetches the file, and yields it if it is the expected one. It is deleted at the end.

        Raises MediaRefused, MediaChanged (another file than expected), or MediaUnavailable.
        """
        async with self._spool.file(organization_id) as file:
            facts = await self._fetcher.fetch(organization_id, url, file)
            if expected_sha256 is not None and facts.sha256 != expected_sha256:
                raise MediaChanged("is not the file any more that was approved")
            yield MediaFile(facts=facts, path=file.path, file=file)

    def shown(self, url: str) -> str:
        """Returns the URL without its query. Raises MediaRefused if it may not be called."""
        return self._fetcher.read_url(url).shown

    async def close(self) -> None:
        await self._spool.close()
