"""A fake of Facebook pages: posts, unpublished photos and videos, comments."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import BodyPartReader, web

from devstack.networks.meta import ROOT, MetaNetwork, call
from servicekit.clock import Clock

_VIDEO = r"{node:7\d{14}}"
_MOST_PHOTO_BYTES = 4_000_000
_LONGEST_TEXT = 63_206


@dataclass(slots=True)
class Upload:
    """A photo or a video."""

    id: str
    page: str
    sha256: str
    text: str
    published: bool
    # Reads of its status until a video is processed.
    polls: int = 0
    # What a video ends with, if it cannot be processed.
    error: str = ""


@dataclass(slots=True)
class Entry:
    """A post or a comment."""

    id: str
    page: str
    text: str
    stamp: str
    time: datetime
    media: list[str] = field(default_factory=list)


class FacebookNetwork(MetaNetwork):
    name: ClassVar[str] = "facebook"
    rate_code: ClassVar[int] = 80001
    settings = ("refuse_duplicates", "visibility_lag", "processing_polls", "processing_error", "hides_attachments")

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        # A page that posts the same text twice in a row is refused.
        self.refuse_duplicates = False
        # Seconds until a post is listed.
        self.visibility_lag = 0.0
        self.processing_polls = 0
        self.processing_error = ""
        self.hides_attachments = False
        self.photos: dict[str, Upload] = {}
        self.videos: dict[str, Upload] = {}
        self.posts: list[Entry] = []
        self.comments: dict[str, list[Entry]] = {}

    def graph(self) -> Iterable[web.RouteDef]:
        return (
            web.post(f"{ROOT}/{{account}}/feed", self.feed),
            web.post(f"{ROOT}/{{account}}/photos", self.add_photo),
            web.post(f"{ROOT}/{{account}}/videos", self.add_video),
            web.get(f"{ROOT}/{{account}}/published_posts", self.published_posts),
            web.post(f"{ROOT}/{{node}}/comments", self.add_comment),
            web.get(f"{ROOT}/{{node}}/comments", self.list_comments),
            web.post(f"{ROOT}/{_VIDEO}", self.publish_video),
            web.get(f"{ROOT}/{_VIDEO}", self.video),
        )

    def owner_of(self, node: str) -> str:
        upload = self.videos.get(node) or self.photos.get(node)
        return upload.page if upload is not None else node.rpartition("_")[0]

    def refused(self, request: web.Request) -> web.Response:
        return self.failure(100, 1404102, "It looks like it violates our Community Standards")

    @call("feed")
    async def feed(self, request: web.Request) -> web.Response:
        page, form = request.match_info["account"], await _form(request)
        text, link = form.get("message", ""), form.get("link", "")
        photos = _attached(form)
        if not (text or link or photos) or len(text) > _LONGEST_TEXT:
            return self.failure(100)
        if any(each not in self.photos or self.photos[each].page != page for each in photos):
            return self.failure(100, None, "The parameter attached_media is not valid")
        if any(self.photos[each].published for each in photos):
            return self.failure(100, 1366051, "These photos were already posted")
        mine = [post for post in self.posts if post.page == page]
        if self.refuse_duplicates and mine and (mine[-1].text, mine[-1].media) == (text, photos):
            return self.failure(506, None, "Duplicate status message")
        entry = self._entry(f"{page}_{self.number():015d}", page, text, photos)
        self.posts.append(entry)
        for each in photos:
            self.photos[each].published = True
        digests = [self.photos[each].sha256 for each in photos]
        alt_texts = [self.photos[each].text for each in photos]
        self.effect(page, id=entry.id, channel="facebook", text=text, link=link, media=digests, alt_texts=alt_texts)
        return web.json_response({"id": entry.id})

    @call("photos")
    async def add_photo(self, request: web.Request) -> web.Response:
        page = request.match_info["account"]
        fields, size, sha256 = await _parts(request)
        if size == 0 or size >= _MOST_PHOTO_BYTES:
            return self.failure(100, 1366046, "Your photos couldn't be uploaded")
        if fields.get("published") != "false":
            self.problem("a photo was published by its upload")
        photo = Upload(f"12{self.number():013d}", page, sha256, fields.get("alt_text_custom", ""), published=False)
        self.photos[photo.id] = photo
        return web.json_response({"id": photo.id})

    @call("videos")
    async def add_video(self, request: web.Request) -> web.Response:
        page = request.match_info["account"]
        fields, size, sha256 = await _parts(request)
        if size == 0:
            return self.failure(352, None, "Sorry, the video file you selected is in a format that we don't support")
        if fields.get("published") != "false":
            self.problem("a video was published by its upload")
        video = Upload(f"7{self.number():014d}", page, sha256, fields.get("description", ""), published=False)
        video.polls, video.error = self.processing_polls, self.processing_error
        self.videos[video.id] = video
        return web.json_response({"id": video.id})

    @call("video")
    async def video(self, request: web.Request) -> web.Response:
        video = self.videos.get(request.match_info["node"])
        if video is None:
            return self.absent()
        return web.json_response(
            {"id": video.id, "published": video.published, "status": {"video_status": self._status(video)}}
        )

    @call("publish_video")
    async def publish_video(self, request: web.Request) -> web.Response:
        video, form = self.videos.get(request.match_info["node"]), await _form(request)
        if video is None:
            return self.absent()
        if form.get("published") != "true":
            return self.failure(100)
        if video.polls or video.error:
            self.problem(f"video {video.id} was published before it was ready")
            return self.failure(100, None, "The video is not ready")
        if not video.published:
            video.published = True
            self.effect(video.page, id=video.id, channel="facebook", text=video.text, link="", media=[video.sha256])
        return web.json_response({"success": True})

    @call("published_posts")
    async def published_posts(self, request: web.Request) -> web.Response:
        page, since = request.match_info["account"], int(request.query.get("since", "0"))
        visible = self.clock.now() - timedelta(seconds=self.visibility_lag)
        posts = [
            self._shown(post)
            for post in reversed(self.posts)
            if post.page == page and post.time.timestamp() >= since and post.time <= visible
        ]
        return self.listed(request, posts)

    @call("comment")
    async def add_comment(self, request: web.Request) -> web.Response:
        node, form = request.match_info["node"], await _form(request)
        page = self._page_of(node)
        if page is None:
            return self.absent()
        if not form.get("message"):
            return self.failure(100)
        comment = self._entry(f"{node.rpartition('_')[2]}_{self.number():015d}", page, form["message"], [])
        self.comments.setdefault(node, []).append(comment)
        self.effect(page, id=comment.id, channel="facebook", text=comment.text, follows=node, media=[])
        return web.json_response({"id": comment.id})

    @call("comments")
    async def list_comments(self, request: web.Request) -> web.Response:
        node = request.match_info["node"]
        if self._page_of(node) is None:
            return self.absent()
        comments = [
            {"id": each.id, "message": each.text, "created_time": each.stamp}
            | ({"from": {"id": each.page}} if each.page else {})
            for each in reversed(self.comments.get(node, []))
        ]
        return self.listed(request, comments)

    def write(self, page: str, text: str, media: list[str] | None = None) -> str:
        """Has somebody else post something to the page; returns its id."""
        entry = self._entry(f"{page}_{self.number():015d}", page, text, media or [])
        self.posts.append(entry)
        return entry.id

    def comment_as(self, author: str, node: str, text: str) -> None:
        """Has somebody comment on a post; Facebook does not always say who it was."""
        entry = self._entry(f"{node.rpartition('_')[2]}_{self.number():015d}", author, text, [])
        self.comments.setdefault(node, []).append(entry)

    def _entry(self, identifier: str, page: str, text: str, media: list[str]) -> Entry:
        return Entry(identifier, page, text, self.stamp(), self.clock.now(), media)

    def _status(self, video: Upload) -> str:
        if video.polls:
            video.polls -= 1
            return "processing"
        return video.error or "ready"

    def _page_of(self, node: str) -> str | None:
        """Returns the page of what may be commented on; None if it is not there."""
        if (video := self.videos.get(node)) is not None:
            return video.page if video.published else None
        return next((post.page for post in self.posts if post.id == node), None)

    def _shown(self, post: Entry) -> Mapping[str, Any]:
        shown: dict[str, Any] = {"id": post.id, "created_time": post.stamp}
        shown["permalink_url"] = f"https://www.facebook.com/{post.id}"
        if post.text:
            shown["message"] = post.text
        if post.media and not self.hides_attachments:
            (first, *more) = [{"target": {"id": each}} for each in post.media]
            inner = {"subattachments": {"data": [first, *more]}} if more else {}
            shown["attachments"] = {"data": [{"target": {"id": "album"}, **inner} if more else first]}
        return shown


async def _form(request: web.Request) -> Mapping[str, str]:
    return {name: text for name, text in (await request.post()).items() if isinstance(text, str)}


def _attached(form: Mapping[str, str]) -> list[str]:
    return [str(each["media_fbid"]) for each in json.loads(form.get("attached_media", "[]"))]


async def _parts(request: web.Request) -> tuple[Mapping[str, str], int, str]:
    """Reads a body of several parts. Returns its fields, and of the file `source` the size and the digest."""
    fields: dict[str, str] = {}
    digest, size = hashlib.sha256(), 0
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name != "source":
            fields[part.name or ""] = await part.text()
            continue
        while piece := await part.read_chunk():
            digest.update(piece)
            size += len(piece)
    return fields, size, digest.hexdigest()
