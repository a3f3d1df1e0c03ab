"""A source of media that serves files from a folder, and media that it serves."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from channels.validation import MediaKind
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.media import MediaFacts

_PIECE = 10_000
_KINDS = {
    ".jpg": (MediaKind.IMAGE, "image/jpeg"),
    ".png": (MediaKind.IMAGE, "image/png"),
    ".gif": (MediaKind.IMAGE, "image/gif"),
    ".mp4": (MediaKind.VIDEO, "video/mp4"),
    ".pdf": (MediaKind.DOCUMENT, "application/pdf"),
}


@dataclass(frozen=True, slots=True)
class FolderFile:
    facts: MediaFacts
    content: bytes
    is_broken: bool = False

    async def pieces(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), _PIECE):
            yield self.content[start : start + _PIECE]
        if self.is_broken:
            raise MediaUnavailable("SPOOL_BROKEN", "cannot be read from the local disk")


@dataclass(slots=True)
class MediaFolder:
    """Media is at `https://media.example/NAME`, for every organization; what was not added cannot be fetched."""

    folder: Path
    # The names in the order in which they were opened.
    opened: list[str] = field(default_factory=list)
    # Names of files that cannot be fetched for now.
    away: set[str] = field(default_factory=set)
    # Names of files that end a byte too early.
    short: set[str] = field(default_factory=set)
    # Names of files whose end cannot be read from the disk.
    broken: set[str] = field(default_factory=set)
    # Names of files that never come.
    slow: set[str] = field(default_factory=set)

    def add(self, name: str, content: bytes = b"bytes", alt_text: str = "") -> ContentMedia:
        """Writes a file, and returns the media that pins its bytes."""
        (self.folder / name).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        return ContentMedia(url=f"https://media.example/{name}", alt_text=alt_text, sha256=sha256)

    @asynccontextmanager
    async def open(self, _organization_id: str, media: ContentMedia) -> AsyncIterator[FolderFile]:
        name = media.url.rpartition("/")[2]
        self.opened.append(name)
        path = self.folder / name
        if name in self.slow:
            await asyncio.Event().wait()
        if name in self.away or not path.exists():
            raise MediaUnavailable("AWAY", "the server of the media does not answer")
        content = path.read_bytes()
        facts = _facts(path.suffix, content)
        if media.sha256 not in ("", facts.sha256):
            raise MediaRefused("MEDIA_CHANGED", "the media is not what was approved")
        is_cut = name in self.short or name in self.broken
        yield FolderFile(facts, content[:-1] if is_cut else content, is_broken=name in self.broken)


def _facts(suffix: str, content: bytes) -> MediaFacts:
    kind, content_type = _KINDS[suffix]
    is_document = kind is MediaKind.DOCUMENT
    return MediaFacts(
        kind=kind,
        content_type=content_type,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        width=0 if is_document else 1200,
        height=0 if is_document else 800,
        duration=timedelta(seconds=7) if kind is MediaKind.VIDEO else None,
    )
