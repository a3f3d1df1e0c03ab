"""Containers of Instagram: what is prepared of a post, one step at a time.

A single picture, reel or story is one container. A carousel has one for each of its parts, which must all be FINISHED
before that of the carousel itself is made. Instagram fetches the media by itself, from the address that was approved;
so each is opened, which checks its bytes, just before its container is made.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from channels.validation import MediaKind
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.answers import list_in, number_in, object_in, object_of, text_in
from publisher_service.adapters.providers.media_source import MediaSource, without_media
from publisher_service.adapters.providers.meta_errors import class_of_subcode
from publisher_service.adapters.providers.meta_graph import Graph, handle_naming, not_made, segment
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.preparation import Delayed, Preparing, Processing, Ready, Unfit, Void
from publisher_service.domain.provider_error import ErrorClass, ProviderError, preparing_of
from servicekit.record import record

STORY: Final = "instagram_story"
_LONGEST_ALT_TEXT: Final = 1000
_SUBCODE: Final = re.compile(r"\b(22\d{5})\b")
_HOPELESS: Final = (ErrorClass.PERMANENT, ErrorClass.PERMANENT_MEDIA)
# The quota counts the posts of the last 24 hours, so room comes back post by post.
_QUOTA_AGAIN: Final = timedelta(minutes=15)


@record(frozen=True, slots=True, kw_only=True)
class Container:
    """The content of a handle. `left` is how many posts the account might publish when this one became ready."""

    container: str = ""
    children: tuple[str, ...] = ()
    left: int | None = None


def container_of(handle: str) -> Container:
    parts = object_of(handle.encode())
    container = parts.get("container")
    return Container(
        container=container if isinstance(container, str) else "",
        children=tuple(each for each in list_in(parts, "children") or () if isinstance(each, str)),
        left=number_in(parts, "left"),
    )


class Containers:
    def __init__(self, graph: Graph, media: MediaSource) -> None:
        self._graph = graph
        self._media = media

    async def status(self, container: str, token: str) -> Mapping[str, Any] | ProviderError:
        """Reads how far a container is: its `status_code`, and words in its `status`."""
        return await self._graph.read(segment(container), token, {"fields": "status_code,status,id"})

    async def begin(self, post: Post) -> Preparing:
        if not post.media:
            return Unfit(reason="MEDIA_REQUIRED", message="Instagram takes no post without a picture or a video")
        is_carousel = len(post.media) > 1
        if is_carousel and post.channel == STORY:
            return Unfit(reason="MEDIA_COUNT", message="a story is one picture or one video")
        made = await self._fetched(post, post.media[0])
        if not isinstance(made, str):
            return made
        return Processing(handle=handle_naming({"children": [made]} if is_carousel else {"container": made}))

    async def go_on(self, post: Post) -> Preparing:
        state = container_of(post.handle)
        if state.container:
            return await self._finished(post, state.container)
        if len(state.children) < len(post.media):
            made = await self._fetched(post, post.media[len(state.children)])
            if not isinstance(made, str):
                return made
            return Processing(handle=handle_naming({"children": [*state.children, made]}))
        for child in state.children:
            if (unfinished := await self._unfinished(post, child)) is not None:
                return unfinished
        return await self._carousel(post, state.children)

    async def _fetched(self, post: Post, media: ContentMedia) -> str | Preparing:
        """Makes the container of one picture or video; returns its id."""
        try:
            async with self._media.open(post.organization_id, media) as file:
                kind = file.facts.kind
        except (MediaRefused, MediaUnavailable) as error:
            return without_media(error)
        if kind is MediaKind.DOCUMENT:
            return Unfit(reason="MEDIA_KIND", message="Instagram takes pictures and videos alone")
        return await self._made(post, _fields(post, media, is_video=kind is MediaKind.VIDEO))

    async def _carousel(self, post: Post, children: Sequence[str]) -> Preparing:
        made = await self._made(post, {"media_type": "CAROUSEL", "children": ",".join(children), **_caption(post)})
        return made if not isinstance(made, str) else Processing(handle=handle_naming({"container": made}))

    async def _made(self, post: Post, fields: Mapping[str, str]) -> str | Preparing:
        made = await self._graph.make(f"{segment(post.external_account_id)}/media", post.access_token, fields)
        return made if isinstance(made, str) else not_made(made)

    async def _finished(self, post: Post, container: str) -> Preparing:
        unfinished = await self._unfinished(post, container)
        return await self._within_quota(post, container) if unfinished is None else unfinished

    async def _unfinished(self, post: Post, container: str) -> Preparing | None:
        """Returns why the container cannot be used, or not yet; None if it can."""
        seen = await self.status(container, post.access_token)
        if isinstance(seen, ProviderError):
            return preparing_of(seen)
        status = text_in(seen, "status")
        match seen.get("status_code"):
            case "FINISHED" | "PUBLISHED":
                return None
            case "IN_PROGRESS":
                return Processing(handle=post.handle)
            case "ERROR":
                return _failed(status)
            case "EXPIRED":
                return Void(reason="CONTAINER_EXPIRED", message="the container was not published within 24 hours")
            case _:
                return Delayed(message="Instagram does not say how far the container is")

    async def _within_quota(self, post: Post, container: str) -> Preparing:
        """Returns Ready, or waits while the account may publish no more. A quota that cannot be read stops nothing."""
        query = {"fields": "config,quota_usage"}
        path = f"{segment(post.external_account_id)}/content_publishing_limit"
        seen = await self._graph.read(path, post.access_token, query)
        left = None if isinstance(seen, ProviderError) else _left(seen)
        if left is not None and left <= 0:
            message = "the account has published as many posts in 24 hours as Instagram takes"
            return Delayed(message=message, retry_after=_QUOTA_AGAIN)
        return Ready(handle=handle_naming({"container": container} | ({"left": left} if left is not None else {})))


def _fields(post: Post, media: ContentMedia, *, is_video: bool) -> Mapping[str, str]:
    where = {"video_url" if is_video else "image_url": media.url}
    if post.channel == STORY:
        return {"media_type": "STORIES", **where}
    alt_text = {"alt_text": media.alt_text[:_LONGEST_ALT_TEXT]} if media.alt_text and not is_video else {}
    if len(post.media) > 1:
        kind = {"media_type": "VIDEO"} if is_video else {}
        return {**kind, **where, **alt_text, "is_carousel_item": "true"}
    kind = {"media_type": "REELS", "share_to_feed": "true"} if is_video else {}
    return {**kind, **where, **alt_text, **_caption(post)}


def _caption(post: Post) -> Mapping[str, str]:
    return {"caption": post.text} if post.text else {}


def _failed(status: str) -> Preparing:
    """Returns what the words of a failed container mean: they have the subcode in them."""
    found = _SUBCODE.search(status)
    kind = class_of_subcode(int(found[1])) if found else None
    reason = f"META_{found[1]}" if found else "CONTAINER_ERROR"
    message = status or "Instagram could not process the media"
    return Unfit(reason=reason, message=message) if kind in _HOPELESS else Void(reason=reason, message=message)


def _left(body: Mapping[str, Any]) -> int | None:
    """Returns how many posts the account may still publish; None if the answer does not say."""
    (entry, *_) = list_in(body, "data") or (None,)
    if not isinstance(entry, dict):
        return None
    used, total = number_in(entry, "quota_usage"), number_in(object_in(entry, "config"), "quota_total")
    return total - used if used is not None and total is not None else None
