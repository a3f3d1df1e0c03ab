"""The media of posts as adapters of providers open it: only the bytes that were approved."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from publisher_service.adapters.media.files import MediaFile, MediaFiles
from publisher_service.domain.content import ContentMedia


class PostMedia:
    def __init__(self, files: MediaFiles) -> None:
        self._files = files

    @asynccontextmanager
    async def open(self, organization_id: str, media: ContentMedia) -> AsyncIterator[MediaFile]:
        """Raises MediaRefused, MediaUnavailable, or MediaChanged for other bytes than the approved ones."""
        async with self._files.open(organization_id, media.url, expected_sha256=media.sha256 or None) as file:
            yield file
