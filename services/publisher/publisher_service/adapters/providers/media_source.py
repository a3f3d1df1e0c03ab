"""Media as adapters get it: fetched, checked against what was approved, and on disk while it is used."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from publisher_service.adapters.media.refusals import MediaTrouble
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.media import MediaFacts
from publisher_service.domain.preparation import Delayed, Unfit


class MediaFile(Protocol):
    """The bytes of media, on disk until the end of the block."""

    @property
    def facts(self) -> MediaFacts: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Yields the bytes in their order, in pieces that fit into memory."""
        ...


class MediaSource(Protocol):
    def open(self, organization_id: str, media: ContentMedia) -> AbstractAsyncContextManager[MediaFile]:
        """Fetches media, and checks that it has the approved bytes.

        Raises MediaRefused or MediaUnavailable of `adapters.media.refusals`, both of which are a MediaTrouble.
        """
        ...


def without_media(trouble: MediaTrouble) -> Unfit | Delayed:
    """Returns what the trouble means for the preparation of a post."""
    if trouble.is_transient:
        return Delayed(message=trouble.message)
    return Unfit(reason=trouble.reason, message=trouble.message)
