"""Media of a post as attachments of a message: fetched together, within a bound on their sum."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import unquote, urlsplit

from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.media_source import MediaFile, MediaSource, without_media
from publisher_service.domain.preparation import Delayed, Ready, Unfit
from servicekit.record import record

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_STEM: Final = 60
_ENDINGS: Final = {
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
}


@record(frozen=True, slots=True, kw_only=True)
class Attachment:
    name: str
    file: MediaFile


@asynccontextmanager
async def opened(source: MediaSource, post: Post, *, most_bytes: int) -> AsyncIterator[Sequence[Attachment]]:
    """Fetches the media of a post. Raises MediaRefused or MediaUnavailable."""
    async with AsyncExitStack() as stack:
        attachments: list[Attachment] = []
        for number, media in enumerate(post.media, 1):
            file = await stack.enter_async_context(source.open(post.organization_id, media))
            attachments.append(Attachment(name=_name(media.url, file.facts.content_type, number), file=file))
            if sum(each.file.facts.size for each in attachments) > most_bytes:
                raise MediaRefused(
                    "MEDIA_TOO_LARGE", f"the attachments have more than {most_bytes // 1_000_000} MB together"
                )
        yield attachments


async def checked(source: MediaSource, post: Post, *, most_bytes: int, handle: str) -> Ready | Unfit | Delayed:
    """Returns whether the media of a post can be attached: the post is ready under that handle."""
    try:
        async with opened(source, post, most_bytes=most_bytes):
            return Ready(handle=handle)
    except (MediaRefused, MediaUnavailable) as error:
        return without_media(error)


def _name(url: str, content_type: str, number: int) -> str:
    """Returns the last part of the URL's path as a plain file name, with the ending of what the bytes are."""
    stem = _UNSAFE.sub("-", unquote(urlsplit(url).path).rpartition("/")[2].rpartition(".")[0])[:_LONGEST_STEM]
    return (stem.strip(".-") or f"attachment-{number}") + _ENDINGS.get(content_type, "")
