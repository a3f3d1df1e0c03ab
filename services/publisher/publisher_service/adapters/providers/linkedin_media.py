"""Media of LinkedIn: each is uploaded in a step of its own, and processed before a post may show it.

A member may not ask how far a picture or a document is, so their posts wait for a while instead.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from channels.validation import MediaKind
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.answers import object_in, object_of, text_in
from publisher_service.adapters.providers.calls import Unanswered
from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from publisher_service.adapters.providers.linkedin_api import LinkedInApi, path_of
from publisher_service.adapters.providers.linkedin_parts import Cut, Part, parts_of
from publisher_service.adapters.providers.media_source import MediaFile, MediaSource, without_media
from publisher_service.domain.outcome import NotSent
from publisher_service.domain.preparation import Delayed, Preparing, Processing, Ready, Unfit, Void

Connect = Callable[[str], HttpOrigin]

# How long a member's picture or document is left alone before it is shown.
_GRACE: Final = {MediaKind.IMAGE: timedelta(seconds=15), MediaKind.DOCUMENT: timedelta(seconds=45)}
_RESOURCES: Final = {MediaKind.IMAGE: "images", MediaKind.VIDEO: "videos", MediaKind.DOCUMENT: "documents"}
_NAMES: Final = {MediaKind.IMAGE: "image", MediaKind.VIDEO: "video", MediaKind.DOCUMENT: "document"}
# Hosts for uploads; so far LinkedIn has named one.
_MOST_HOSTS: Final = 8
_HOST: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.linkedin\.com")
_TEXT: Final = "text"


NOT_PREPARED: Final = NotSent(reason="NOT_PREPARED", message="nobody knows what was uploaded for the post")
"""The media of a post are missing from its handle: without them it must not go out."""


class _Stopped(Exception):
    """A step of an upload did not succeed, which means this for the preparation."""

    def __init__(self, meaning: Preparing) -> None:
        super().__init__()
        self.meaning = meaning


class LinkedInMedia:
    def __init__(
        self, api: LinkedInApi, origin: HttpOrigin, limits: Limits, *, media: MediaSource, connect: Connect | None
    ) -> None:
        """`connect` opens a server of LinkedIn that an answer has named, by its URL."""
        self._api = api
        self._origin = origin
        self._timeout = limits.prepare_timeout
        self._media = media
        self._connect = connect or (lambda url: HttpOrigin(url, connections=limits.preparers))
        self._hosts: dict[str, HttpOrigin] = {}

    async def close(self) -> None:
        for origin in self._hosts.values():
            await origin.close()

    async def begin(self, post: Post, owner: str) -> Preparing:
        """Uploads the first of the media; a post of text alone is ready at once."""
        return await self._upload_next(post, owner, ()) if post.media else Ready(handle=_TEXT)

    async def go_on(self, post: Post, owner: str, *, readable: frozenset[MediaKind]) -> Preparing:
        """Uploads the next of the media, or looks whether all can be shown. `readable` are those it may ask about."""
        if not post.media:
            return Ready(handle=_TEXT)
        urns, uploaded = _read_handle(post.handle)
        if not urns or len(urns) > len(post.media):
            return Void(reason="HANDLE_UNREADABLE", message="nobody knows what was uploaded")
        if len(urns) < len(post.media):
            return await self._upload_next(post, owner, urns)
        for urn in urns:
            unready = await self._until_shown(post, urn, uploaded, readable)
            if unready is not None:
                return unready
        return Ready(handle=post.handle)

    async def _until_shown(
        self, post: Post, urn: str, uploaded: float, readable: frozenset[MediaKind]
    ) -> Preparing | None:
        """Returns None once a post can show what was uploaded."""
        kind = _kind_of(urn)
        answer = None
        if kind in readable:
            answer = await self._api.read(f"/rest/{_RESOURCES[kind]}/{path_of(urn)}", post.access_token)
        if answer is None or (isinstance(answer, Answer) and answer.status == 403):
            waited = self._api.clock.now().timestamp() - uploaded
            grace = _GRACE.get(kind, max(_GRACE.values()))
            return None if waited >= grace.total_seconds() else Processing(handle=post.handle)
        if isinstance(answer, Unanswered):
            return Delayed(message=answer.message)
        if answer.status != 200:
            return self._api.preparing(answer)
        match object_of(answer.body).get("status"):
            case "AVAILABLE":
                return None
            case "PROCESSING" | "WAITING_UPLOAD":
                return Processing(handle=post.handle)
            case "PROCESSING_FAILED":
                return Void(reason="MEDIA_PROCESSING_FAILED", message=f"LinkedIn could not process the {_NAMES[kind]}")
            case _:
                return Delayed(message=f"LinkedIn does not say how far the {_NAMES[kind]} is")

    async def _upload_next(self, post: Post, owner: str, urns: Sequence[str]) -> Preparing:
        media = post.media[len(urns)]
        try:
            async with self._media.open(post.organization_id, media) as file:
                if file.facts.kind is not MediaKind.IMAGE and len(post.media) > 1:
                    return Unfit(reason="MEDIA_CANNOT_MIX", message="only pictures go together on LinkedIn")
                urn = await self._upload(file, owner, post.access_token)
        except (MediaRefused, MediaUnavailable) as error:
            return without_media(error)
        except _Stopped as stopped:
            return stopped.meaning
        return Processing(handle=_handle((*urns, urn), self._api.clock.now().timestamp()))

    async def _upload(self, file: MediaFile, owner: str, token: str) -> str:
        """Uploads a file in one step: the addresses for its parts are too long to be kept. Returns its URN."""
        facts = file.facts
        kind = facts.kind
        asked: dict[str, object] = {"owner": owner}
        if kind is MediaKind.VIDEO:
            asked |= {"fileSizeBytes": facts.size, "uploadCaptions": False, "uploadThumbnail": False}
        resource = _RESOURCES[kind]
        begun = await self._asked(
            f"/rest/{resource}?action=initializeUpload", token, {"initializeUploadRequest": asked}
        )
        value = object_in(object_of(begun.body), "value")
        urn = text_in(value, _NAMES[kind])
        parts = parts_of(value, size=facts.size)
        if not urn.startswith(f"urn:li:{_NAMES[kind]}:") or not urn.isascii() or len(urn) > 200 or not parts:
            raise _Stopped(Delayed(message="LinkedIn does not say where to upload"))
        cut = Cut(file.pieces())
        # The addresses of a video's parts are signed; a token is no business of theirs.
        headers = {} if kind is MediaKind.VIDEO else {"Authorization": f"Bearer {token}"}
        etags = [await self._put(part, cut, headers) for part in parts]
        if kind is MediaKind.VIDEO:
            done = {"video": urn, "uploadToken": text_in(value, "uploadToken"), "uploadedPartIds": etags}
            await self._asked("/rest/videos?action=finalizeUpload", token, {"finalizeUploadRequest": done})
        return urn

    async def _asked(self, path: str, token: str, body: Mapping[str, Any]) -> Answer:
        answer = await self._api.create(path, token, body)
        if not isinstance(answer, Answer):
            raise _Stopped(Delayed(message=answer.message))
        if answer.status not in (200, 201):
            raise _Stopped(self._api.preparing(answer))
        return answer

    async def _put(self, part: Part, cut: Cut, headers: Mapping[str, str]) -> str:
        """Uploads a part of a file. Returns the name that its answer gives it."""
        place = self._place_of(part.url)
        if place is None:
            raise _Stopped(Delayed(message="LinkedIn names a server for uploads that is not its own"))
        origin, path = place
        content = {**headers, "Content-Type": "application/octet-stream"}
        try:
            answer = await origin.upload(
                "PUT", path, content, cut.take(part.size), size=part.size, timeout=self._timeout
            )
        except (NotConnected, ConnectionLost, TimeoutError, EOFError) as error:
            raise _Stopped(Delayed(message=f"the upload broke: {type(error).__name__}")) from None
        if answer.status not in (200, 201):
            raise _Stopped(self._api.preparing(answer))
        return answer.headers.get(b"etag", b"").decode("ascii", "replace").strip('"')

    def _place_of(self, url: str) -> tuple[HttpOrigin, str] | None:
        """Returns the server and the path of an address for uploads: this very server, or one of linkedin.com."""
        if not url.isascii() or not url.isprintable() or " " in url:
            return None
        if (path := self._origin.path_of(url)) is not None:
            return self._origin, path
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return None
        if parts.scheme != "https" or port not in (None, 443) or "@" in parts.netloc:
            return None
        if not _HOST.fullmatch(host):
            return None
        if host not in self._hosts and len(self._hosts) >= _MOST_HOSTS:
            return None
        origin = self._hosts.get(host) or self._hosts.setdefault(host, self._connect(f"https://{host}"))
        return origin, f"{parts.path}?{parts.query}" if parts.query else parts.path


def media_content(post: Post) -> dict[str, Any] | None:
    """Returns the media of a prepared post as a request to publish names them; None if it has none."""
    urns, _ = _read_handle(post.handle)
    if not post.media or len(urns) != len(post.media):
        return None
    if len(urns) > 1:
        pairs = zip(urns, post.media, strict=True)
        return {"multiImage": {"images": [{"id": urn, **_alt(media.alt_text)} for urn, media in pairs]}}
    (urn,) = urns
    if _kind_of(urn) is MediaKind.IMAGE:
        return {"media": {"id": urn, **_alt(post.media[0].alt_text)}}
    # A document without a title is refused.
    title = post.title or ("Document" if _kind_of(urn) is MediaKind.DOCUMENT else "")
    return {"media": {"id": urn, **({"title": title} if title else {})}}


def ids_of(content: object) -> tuple[str, ...]:
    """Returns the media of a post's content, in their order; none if it has none, or cannot be read."""
    match content:
        case {"media": {"id": str(urn)}}:
            return (urn,)
        case {"multiImage": {"images": [*images]}}:
            return tuple(str(each.get("id")) for each in images if isinstance(each, dict))
        case _:
            return ()


def _alt(text: str) -> dict[str, str]:
    return {"altText": text} if text else {}


def _kind_of(urn: str) -> MediaKind:
    kinds = {name: kind for kind, name in _NAMES.items()}
    return kinds.get(urn.split(":")[2], MediaKind.IMAGE)


def _handle(urns: Sequence[str], uploaded: float) -> str:
    return json.dumps({"urns": list(urns), "uploaded": round(uploaded)}, separators=(",", ":"))


def _read_handle(handle: str) -> tuple[tuple[str, ...], float]:
    """Returns what was uploaded, and when the last of it was; nothing if the handle is not one of these."""
    match object_of(handle.encode()):
        case {"urns": [*urns], "uploaded": int(uploaded)} if all(
            isinstance(urn, str) and urn.count(":") >= 3 for urn in urns
        ):
            return tuple(urns), uploaded
        case _:
            return (), 0.0
