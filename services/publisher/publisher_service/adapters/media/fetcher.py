"""Fetches a file that a user named: through `outside`, in pieces, onto the spool, within bounds of size and time."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from opentelemetry import metrics

from publisher_service.adapters.media.probe import probe
from publisher_service.adapters.media.refusals import MediaRefused, MediaTrouble, MediaUnavailable
from publisher_service.adapters.media.sniff import ENOUGH, Sniffed, looks_like, sniff
from publisher_service.adapters.media.spool import SpoolFile, SpoolFull
from publisher_service.adapters.media.window import Unreadable
from publisher_service.adapters.outside.http_calls import Incoming, exchange
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.places import Crowded, Places
from publisher_service.adapters.outside.refusals import AddressRefused, AnswerLost, Unreachable
from publisher_service.adapters.outside.urls import OutsideUrl
from publisher_service.domain.media import MediaCaps, MediaFacts, MediaReason

_meter = metrics.get_meter(__name__)
_fetches = _meter.create_counter("postflow.media.fetches", description="Files of posts that were fetched, by outcome")

BATCH: Final = 256 * 1024
"""So many bytes are written at once, and at most as many more are in memory."""

_MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TRANSIENT: Final = frozenset({408, 423, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The longest times of a fetch."""

    in_all: timedelta  # with the wait for a place, and all redirects
    answer: timedelta = timedelta(seconds=15)  # until a server begins to answer
    batch: timedelta = timedelta(seconds=10)  # for each 256 KiB: the least rate is 26 kB/s


class MediaFetcher:
    """`places` bound how many files are fetched at once."""

    def __init__(self, outside: Outside, places: Places, *, caps: MediaCaps, pace: Pace) -> None:
        self._outside = outside
        self._places = places
        self._caps = caps
        self._pace = pace

    async def fetch(self, organization_id: str, url: str, file: SpoolFile) -> MediaFacts:
        """Writes the file there, and returns what is known of it. Raises MediaRefused or MediaUnavailable."""
        try:
            facts = await self._fetch(organization_id, url, file)
        except MediaTrouble as trouble:
            _fetches.add(1, {"outcome": "unavailable" if trouble.is_transient else "refused"})
            raise
        _fetches.add(1, {"outcome": "fetched"})
        return facts

    async def _fetch(self, organization_id: str, url: str, file: SpoolFile) -> MediaFacts:
        try:
            async with asyncio.timeout(self._pace.in_all.total_seconds()), self._places.place(organization_id):
                return await self._follow(organization_id, self.read_url(url), file)
        except AddressRefused as refused:
            raise MediaRefused(refused.reason.value, refused.message) from None
        except (Unreachable, AnswerLost) as lost:
            raise MediaUnavailable(lost.reason, lost.message) from None
        except TimeoutError:
            raise MediaUnavailable("TOO_SLOW", "was not received in time") from None
        except SpoolFull:
            raise MediaUnavailable("SPOOL_FULL", "there is no room for more files right now") from None
        except Crowded:
            raise MediaUnavailable("TOO_BUSY", "too many files are being fetched right now") from None

    def read_url(self, url: str) -> OutsideUrl:
        """Returns the URL if it may be called. Looks nothing up. Raises MediaRefused."""
        try:
            return self._outside.read_url(url)
        except AddressRefused as refused:
            raise MediaRefused(refused.reason.value, refused.message) from None

    async def _follow(self, organization_id: str, where: OutsideUrl, file: SpoolFile) -> MediaFacts:
        for _ in range(1 + _MOST_REDIRECTS):
            async with asyncio.timeout(self._pace.answer.total_seconds()) as patience:
                request = exchange(
                    self._outside, organization_id, where, method="GET", headers={}, connect_timeout=self._pace.answer
                )
                async with request as incoming:
                    patience.reschedule(None)
                    if incoming.status not in _REDIRECTS:
                        return await self._receive(incoming, where, file)
                    where = self._redirected(incoming, where)
        raise MediaRefused(MediaReason.MEDIA_REDIRECTED, f"is redirected more than {_MOST_REDIRECTS} times")

    def _redirected(self, incoming: Incoming, where: OutsideUrl) -> OutsideUrl:
        location = incoming.headers.get(b"location", b"")
        if not location:
            raise MediaRefused(MediaReason.MEDIA_REDIRECTED, f"{where.shown} redirects to nowhere")
        try:
            return self._outside.read_redirect(where, location.decode())
        except UnicodeDecodeError:
            raise MediaRefused(
                MediaReason.MEDIA_REDIRECTED, f"{where.shown} redirects to something unreadable"
            ) from None

    async def _receive(self, incoming: Incoming, where: OutsideUrl, file: SpoolFile) -> MediaFacts:
        _check_answer(incoming, where)
        sniffed = await self._download(incoming, where, file)
        try:
            probed = await file.run(lambda number: probe(sniffed, number, file.size))
        except Unreadable as error:
            raise MediaRefused(
                MediaReason.MEDIA_UNREADABLE, f"cannot be read as {sniffed.content_type}: {error}"
            ) from None
        return MediaFacts(
            kind=sniffed.kind,
            content_type=sniffed.content_type,
            size=file.size,
            sha256=file.sha256,
            width=probed.width,
            height=probed.height,
            duration=probed.duration,
            page_count=probed.page_count,
            is_animated=probed.is_animated,
            is_mislabeled=_declared(incoming) != sniffed.content_type,
        )

    async def _download(self, incoming: Incoming, where: OutsideUrl, file: SpoolFile) -> Sniffed:
        """Writes the body to the file. The type is known, and its cap holds, before the first byte is written."""
        _check_size(incoming, self._caps.largest)
        sniffed: Sniffed | None = None
        batch = bytearray()
        async with asyncio.timeout(self._pace.batch.total_seconds()) as patience, aclosing(incoming.pieces()) as pieces:
            async for piece in pieces:
                batch += piece
                if sniffed is None and len(batch) >= ENOUGH:
                    sniffed = self._sniffed(incoming, where, batch)
                if sniffed is not None and len(batch) >= BATCH:
                    await self._append(sniffed, batch, file)
                    batch = bytearray()
                    patience.reschedule(asyncio.get_running_loop().time() + self._pace.batch.total_seconds())
            sniffed = sniffed or self._sniffed(incoming, where, batch)
            await self._append(sniffed, batch, file)
        return sniffed

    def _sniffed(self, incoming: Incoming, where: OutsideUrl, batch: bytearray) -> Sniffed:
        if not batch:
            raise MediaRefused(MediaReason.MEDIA_EMPTY, f"{where.shown} is empty")
        beginning = bytes(batch[:ENOUGH])
        if (sniffed := sniff(beginning)) is None:
            raise MediaRefused(MediaReason.MEDIA_TYPE_UNKNOWN, f"{where.shown} is {looks_like(beginning)}")
        _check_size(incoming, self._caps.of(sniffed.kind))
        return sniffed

    async def _append(self, sniffed: Sniffed, batch: bytearray, file: SpoolFile) -> None:
        _check_cap(file.size + len(batch), self._caps.of(sniffed.kind))
        await file.append(batch)


def _check_answer(incoming: Incoming, where: OutsideUrl) -> None:
    if incoming.status in _TRANSIENT or incoming.status >= 500:
        raise MediaUnavailable("SERVER_BUSY", f"{where.shown} answers {incoming.status}")
    if incoming.status != 200:
        raise MediaRefused(MediaReason.MEDIA_NOT_SERVED, f"{where.shown} answers {incoming.status}")
    # It was not asked for, and a small file may unpack to an endless one.
    if incoming.headers.get(b"content-encoding", b"identity").strip().lower() not in {b"", b"identity"}:
        raise MediaRefused(MediaReason.MEDIA_ENCODED, f"{where.shown} is served compressed (Content-Encoding)")


def _check_size(incoming: Incoming, cap: int) -> None:
    """Refuses what declares to be too large. The declaration may be a lie, so that the bytes are counted as well."""
    length = incoming.headers.get(b"content-length", b"")
    if length.isdigit():
        _check_cap(int(length[:20]), cap)


def _check_cap(size: int, cap: int) -> None:
    if size > cap:
        raise MediaRefused(MediaReason.MEDIA_TOO_LARGE, f"has more than {cap} bytes")


def _declared(incoming: Incoming) -> str:
    declared = incoming.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return declared.decode("ascii", "replace")
