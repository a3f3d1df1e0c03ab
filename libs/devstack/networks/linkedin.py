"""A fake of LinkedIn: members and pages, uploads that are processed, posts that are named in a header alone.

Tokens are granted (`grant`) for a member or for a page that a member runs. A member's token reads neither posts nor
pictures. The same text of the same author is refused for a day, even if the first post is deleted, and the refusal
names that post.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import web

from devstack.networks.linkedin_text import read
from devstack.networks.linkedin_tokens import DAY, VERSION, Grant, LinkedInTokens, Refusal, answer_of, page_of, token_of
from devstack.networks.network import operation
from servicekit.clock import Clock

__all__ = ["VERSION", "LinkedIn"]

_PART = 4 * 1024 * 1024
_RESERVED_KINDS = ("image", "video", "document")


@dataclass
class Upload:
    urn: str
    owner: str
    kind: str
    size: int
    parts: dict[int, bytes] = field(default_factory=dict)
    # When it can be shown; None until all is here.
    ready: datetime | None = None
    fails: bool = False

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(self.parts[number] for number in sorted(self.parts))).hexdigest()


@dataclass
class Shared:
    """A post or a comment."""

    urn: str
    author: str
    text: str
    made: datetime
    content: Mapping[str, Any]
    on: str = ""
    state: str = "PUBLISHED"
    is_deleted: bool = False


class LinkedIn(LinkedInTokens):
    name: ClassVar[str] = "linkedin"

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        self.uploads: dict[str, Upload] = {}
        self.posts: list[Shared] = []
        self.comments: list[Shared] = []
        # How long the same text of the same author is refused; zero: never.
        self.remembers = DAY
        # How long an upload is processed; new ones fail while this is set.
        self.processing = timedelta(0)
        self.media_fail = False

    def delete(self, urn: str) -> None:
        """Deletes a post. Its text stays refused, and its name can no longer be read."""
        for each in self.posts:
            each.is_deleted = each.is_deleted or each.urn == urn

    def furnish(self) -> str:
        """Makes a member and a page."""
        self.grant("sandbox-member", "urn:li:person:sandbox")
        self.grant("sandbox-page", "urn:li:organization:1")
        return "connect urn:li:person:sandbox with sandbox-member, urn:li:organization:1 with sandbox-page"

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.post("/rest/posts", self.create_post),
            web.get("/rest/posts", self.list_posts),
            web.get("/rest/posts/{urn}", self.get_post),
            *(web.post(f"/rest/{kind}s", self.change_upload) for kind in _RESERVED_KINDS),
            *(web.get(f"/rest/{kind}s/{{urn}}", self.get_upload) for kind in _RESERVED_KINDS),
            web.put("/dms-uploads/{urn}/{part}", self.take_bytes),
            web.post("/rest/socialActions/{urn}/comments", self.comment_as_partner),
            web.post("/v2/socialActions/{urn}/comments", self.comment),
            web.get("/rest/socialActions/{urn}/comments", self.list_comments),
            *self.token_routes(),
        )

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        """LinkedIn does not say for how long: the limits are of a day."""
        message = "Resource level throttle MEMBER DAY limit for calls to this resource is reached."
        return answer_of(Refusal(429, "TOO_MANY_REQUESTS", message, serviceErrorCode=101))

    def refused(self, request: web.Request) -> web.Response:
        return answer_of(Refusal(400, "FIELD_LENGTH_TOO_LONG", "Commentary length exceeds maximum"))

    def error(self) -> Mapping[str, Any]:
        return {"status": 500, "code": "INTERNAL_SERVER_ERROR", "message": "Internal Server Error"}

    @operation("post")
    async def create_post(self, request: web.Request) -> web.Response:
        try:
            grant = self.admitted(request, writes=True)
            body = await request.json()
            grant = grant.acting_as(body.get("author"))
            self.check_author(grant, body.get("author"))
            text = read(str(body.get("commentary", "")))
            if len(text) > 3000:
                raise Refusal(400, "FIELD_LENGTH_TOO_LONG", "Commentary length exceeds maximum")
            self._refuse_repeat(grant.owner, text)
            content = body.get("content") or {}
            media = [self._shown(urn, grant) for urn in self._media_of(content)]
        except Refusal as refusal:
            return answer_of(refusal)
        urn = f"urn:li:{'ugcPost' if any(each.kind == 'video' for each in media) else 'share'}:{self.number()}"
        self.posts.append(Shared(urn, grant.owner, str(body["commentary"]), self.clock.now(), content))
        self.effect(
            grant.owner,
            id=urn,
            channel="linkedin_page" if grant.is_page else "linkedin_profile",
            text=text,
            media=[each.digest for each in media],
            link=content.get("article", {}).get("source", ""),
        )
        return web.Response(status=201, headers={"X-RestLi-Id": urn})

    @operation("posts")
    async def list_posts(self, request: web.Request) -> web.Response:
        try:
            grant = self.admitted(request, reads_posts=True).acting_as(request.query.get("author"))
        except Refusal as refusal:
            return answer_of(refusal)
        if request.query.get("q") != "author" or request.query.get("author") != grant.owner:
            return answer_of(Refusal(403, "ACCESS_DENIED", "Not enough permissions to access: posts.FINDER"))
        mine = [each for each in reversed(self.posts) if each.author == grant.owner and not each.is_deleted]
        return page_of(request, "/rest/posts", [_post(each) for each in mine])

    @operation("post.get")
    async def get_post(self, request: web.Request) -> web.Response:
        try:
            grant = self.admitted(request, reads_posts=True)
        except Refusal as refusal:
            return answer_of(refusal)
        for each in self.posts:
            if (each.urn, each.author) == (request.match_info["urn"], grant.owner) and not each.is_deleted:
                return web.json_response(_post(each))
        return answer_of(Refusal(404, "NOT_FOUND", "The post is not there"))

    @operation("upload")
    async def change_upload(self, request: web.Request) -> web.Response:
        kind = request.path.rsplit("/", 1)[-1].removesuffix("s")
        try:
            grant = self.admitted(request, writes=True)
            body = await request.json()
            if request.query.get("action") == "finalizeUpload":
                return self._finalize(body.get("finalizeUploadRequest", {}))
            asked = body.get("initializeUploadRequest", {})
            self.check_author(grant, asked.get("owner"))
        except Refusal as refusal:
            return answer_of(refusal)
        urn = f"urn:li:{kind}:D5{self.number()}"
        upload = self.uploads[urn] = Upload(
            urn, grant.owner, kind, asked.get("fileSizeBytes", 0), fails=self.media_fail
        )
        url = f"{self.url}/dms-uploads/{urn}"
        if kind != "video":
            return web.json_response({"value": {"uploadUrl": f"{url}/0", kind: urn, "uploadUrlExpiresAt": 0}})
        firsts = range(0, upload.size, _PART)
        parts = [
            {"uploadUrl": f"{url}/{number}", "firstByte": first, "lastByte": min(first + _PART, upload.size) - 1}
            for number, first in enumerate(firsts)
        ]
        value = {"video": urn, "uploadToken": "token", "uploadInstructions": parts, "uploadUrlsExpireAt": 0}
        return web.json_response({"value": value})

    @operation("bytes")
    async def take_bytes(self, request: web.Request) -> web.Response:
        upload, number = self.uploads[request.match_info["urn"]], int(request.match_info["part"])
        if upload.kind == "video" and "Authorization" in request.headers:
            self.problem("a token was sent to a signed address")
        if upload.kind != "video" and token_of(request) not in self.grants:
            return web.Response(status=401)
        if number in upload.parts:
            self.problem(f"part {number} of {upload.urn} was uploaded twice")
        upload.parts[number] = await request.read()
        if upload.kind != "video":
            upload.ready = self.clock.now() + self.processing
        return web.Response(status=201, headers={"ETag": f'"etag-{number}"'})

    @operation("upload.get")
    async def get_upload(self, request: web.Request) -> web.Response:
        upload = self.uploads.get(request.match_info["urn"])
        try:
            grant = self.admitted(request)
            if upload is None or upload.owner != grant.owner:
                raise Refusal(404, "NOT_FOUND", "There is no such upload")
            if not grant.is_page and upload.kind != "video":
                raise Refusal(403, "ACCESS_DENIED", f"Not enough permissions to access: {upload.kind}s.GET")
        except Refusal as refusal:
            return answer_of(refusal)
        return web.json_response({"id": upload.urn, "owner": upload.owner, "status": self._status(upload)})

    @operation("comment.partner")
    async def comment_as_partner(self, request: web.Request) -> web.Response:
        grant = self.grants.get(token_of(request))
        if grant is not None and not grant.is_page and not self.is_partner:
            message = f"Not enough permissions to access: partnerApiSocialActions.CREATE.{VERSION}01"
            return answer_of(Refusal(403, "ACCESS_DENIED", message, serviceErrorCode=100))
        return await self._comment(request)

    @operation("comment")
    async def comment(self, request: web.Request) -> web.Response:
        return await self._comment(request, versioned=False)

    async def _comment(self, request: web.Request, *, versioned: bool = True) -> web.Response:
        on = request.match_info["urn"]
        try:
            grant = self.admitted(request, writes=True, versioned=versioned)
            body = await request.json()
            self.check_author(grant, body.get("actor"))
            post = next((each for each in self.posts if each.urn == on and not each.is_deleted), None)
            if post is None:
                raise Refusal(404, "NOT_FOUND", "The post is not there")
        except Refusal as refusal:
            return answer_of(refusal)
        number, activity = self.number(), f"urn:li:activity:{on.rpartition(':')[2]}"
        urn = f"urn:li:comment:({activity},{number})"
        text = str(body["message"]["text"])
        self.comments.append(Shared(urn, grant.owner, text, self.clock.now(), {}, on=on))
        channel = "linkedin_page" if grant.is_page else "linkedin_profile"
        self.effect(grant.owner, id=urn, channel=channel, text=text, media=[], on=on)
        created = {"id": str(number), "commentUrn": urn, "object": activity, "actor": grant.owner}
        return web.json_response(created, status=201, headers={"X-RestLi-Id": str(number)})

    @operation("comments")
    async def list_comments(self, request: web.Request) -> web.Response:
        try:
            self.admitted(request, reads_posts=True)
        except Refusal as refusal:
            return answer_of(refusal)
        on = request.match_info["urn"]
        return page_of(request, request.path, [_comment(each) for each in self.comments if each.on == on])

    def _refuse_repeat(self, author: str, text: str) -> None:
        known = self.clock.now() - self.remembers
        for each in self.posts:
            if text and each.author == author and read(each.text) == text and each.made > known:
                first = f"Content is a duplicate of {each.urn}"
                why = {"description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST"}
                message = f"com.linkedin.content.common.exception.BadRequestResponseException: {first}"
                raise Refusal(422, "UNPROCESSABLE_ENTITY", message, errorDetails={"inputErrors": [why]})

    def _media_of(self, content: Mapping[str, Any]) -> list[str]:
        match content:
            case {"multiImage": {"images": [*images]}} if 2 <= len(images) <= 20:
                return [str(each["id"]) for each in images]
            case {"media": {"id": str(urn)}}:
                return [urn]
            case {"article": {"source": str(), "title": str()}} | {}:
                return []
            case _:
                raise Refusal(400, "INVALID_CONTENT", "The content is not one of media, multiImage and article")

    def _shown(self, urn: str, grant: Grant) -> Upload:
        upload = self.uploads.get(urn)
        if upload is None or upload.owner != grant.owner:
            raise Refusal(400, "INVALID_URN", f"{urn} is not there")
        match self._status(upload):
            case "AVAILABLE":
                return upload
            case "PROCESSING_FAILED":
                raise Refusal(400, "MEDIA_ASSET_PROCESSING_FAILED", "media asset processing failed")
            case _:
                raise Refusal(400, "MEDIA_ASSET_WAITING_UPLOAD", "media asset is waiting for upload")

    def _status(self, upload: Upload) -> str:
        if upload.ready is None:
            return "WAITING_UPLOAD"
        if self.clock.now() < upload.ready:
            return "PROCESSING"
        return "PROCESSING_FAILED" if upload.fails else "AVAILABLE"

    def _finalize(self, done: Mapping[str, Any]) -> web.Response:
        upload = self.uploads[str(done.get("video"))]
        wanted = [f"etag-{number}" for number in sorted(upload.parts)]
        whole = sum(map(len, upload.parts.values())) == upload.size
        if done.get("uploadedPartIds") != wanted or not whole or done.get("uploadToken") != "token":
            return answer_of(Refusal(400, "INVALID_PARTS", "The parts are not those that were uploaded"))
        upload.ready = self.clock.now() + self.processing
        return web.Response(status=200)


def _post(each: Shared) -> dict[str, Any]:
    made = int(each.made.timestamp() * 1000)
    return {
        "id": each.urn,
        "author": each.author,
        "commentary": each.text,
        "content": each.content,
        "createdAt": made,
        "publishedAt": made,
        "lastModifiedAt": made,
        "lifecycleState": each.state,
        "visibility": "PUBLIC",
    }


def _comment(each: Shared) -> dict[str, Any]:
    return {
        "commentUrn": each.urn,
        "id": each.urn.rpartition(",")[2].removesuffix(")"),
        "actor": each.author,
        "object": each.on,
        "created": {"actor": each.author, "time": int(each.made.timestamp() * 1000)},
        "message": {"attributes": [], "text": each.text},
    }
