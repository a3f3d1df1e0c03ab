"""A fake of Instagram: containers that are processed, expire and are published; media, comments, a quota."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
from aiohttp import web

from devstack.networks.meta import APP_ID, APP_SECRET, ROOT, MetaNetwork, Refusal, call
from devstack.networks.meta_tokens import REFRESHABLE, SHORT
from devstack.networks.network import operation
from servicekit.clock import Clock

_CONTAINER = r"{node:18\d{15}}"
_MEDIA = r"{node:17\d{15}}"
_LIFE = timedelta(hours=24)
_WINDOW = timedelta(hours=24)
_LONGEST_CAPTION = 2200
_FETCHED_WITHIN = aiohttp.ClientTimeout(total=10)


@dataclass(slots=True)
class Container:
    id: str
    account: str
    # IMAGE, VIDEO, REELS, STORIES or CAROUSEL.
    kind: str
    caption: str
    urls: list[str]
    digests: list[str]
    is_child: bool
    made: datetime
    # Reads of its state until it is processed.
    polls: int
    seconds: float
    # The subcode with which its processing fails.
    error: int
    media: str = ""
    children: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Media:
    id: str
    account: str
    caption: str
    product: str
    stamp: str
    time: datetime


class InstagramNetwork(MetaNetwork):
    name: ClassVar[str] = "instagram"
    rate_code: ClassVar[int] = 80002
    settings = ("processing_polls", "processing_seconds", "processing_error", "quota_total", "fetches_media")

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        super().__init__(ledger, clock)
        self.processing_polls = 0
        self.processing_seconds = 0.0
        self.processing_error = 0
        self.quota_total = 100
        # Whether media is fetched from the address that a client gives, as Instagram does.
        self.fetches_media = False
        # Instagram answers a login in one of two forms.
        self.wraps_login = False
        self.containers: dict[str, Container] = {}
        self.media: dict[str, Media] = {}
        self.comments: dict[str, list[Media]] = {}

    def graph(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/oauth/authorize", self.dialog),
            web.post("/oauth/access_token", self.log_in),
            web.get("/access_token", self.exchange_own),
            web.get("/refresh_access_token", self.refresh),
            web.get(f"{ROOT}/me", self.me),
            web.post(f"{ROOT}/{{account}}/media", self.make),
            web.get(f"{ROOT}/{{account}}/media", self.list_media),
            web.post(f"{ROOT}/{{account}}/media_publish", self.publish),
            web.get(f"{ROOT}/{{account}}/content_publishing_limit", self.limit),
            web.post(f"{ROOT}/{{node}}/comments", self.add_comment),
            web.get(f"{ROOT}/{{node}}/comments", self.list_comments),
            web.get(f"{ROOT}/{_CONTAINER}", self.status),
            web.get(f"{ROOT}/{_MEDIA}", self.show),
        )

    def owner_of(self, node: str) -> str:
        owned = self.containers.get(node) or self.media.get(node)
        return owned.account if owned is not None else ""

    def refused(self, request: web.Request) -> web.Response:
        return self.failure(36004, 2207010, "The caption was too long")

    @operation("log_in")
    async def log_in(self, request: web.Request) -> web.Response:
        """Exchanges a code of the dialog for a short-lived token, as Instagram Login does: with errors of its own."""
        given = {name: str(text) for name, text in (await request.post()).items()}
        if (given.get("client_id"), given.get("client_secret")) != (APP_ID, APP_SECRET):
            return _login_failure("Invalid platform app")
        if given.get("grant_type") != "authorization_code":
            return _login_failure("Invalid grant_type: it must be 'authorization_code'")
        user = self.redeemed(given)
        if isinstance(user, Refusal):
            return _login_failure(user.message)
        token = self.tokens.issue(user, self.clock.now(), life=SHORT)
        granted = sorted(self.granted[user])
        # Another id than the one that posts are made with.
        login = {"access_token": token.value, "user_id": f"app-scoped-{user}", "permissions": ",".join(granted)}
        return web.json_response({"data": [login]} if self.wraps_login else login)

    @operation("me")
    async def me(self, request: web.Request) -> web.Response:
        """Says whose token it is."""
        if refusal := self.gate(request):
            return refusal
        token = self.tokens.get(request.headers.get("Authorization", "").partition(" ")[2])
        identifier, name = self.instagram_of[token.user if token is not None else ""]
        return web.json_response({"id": f"app-scoped-{name}", "user_id": identifier, "username": name})

    @operation("exchange_own")
    async def exchange_own(self, request: web.Request) -> web.Response:
        if request.query.get("grant_type") != "ig_exchange_token" or request.query.get("client_secret") != APP_SECRET:
            return self.failure(100, None, "Error validating client secret", kind="OAuthException")
        return self.prolonged(request.query.get("access_token", ""))

    @operation("refresh")
    async def refresh(self, request: web.Request) -> web.Response:
        """Prolongs a token that is at least a day old and not over."""
        if request.query.get("grant_type") != "ig_refresh_token":
            return self.failure(100, None, "Unsupported grant_type", kind="OAuthException")
        return self.prolonged(request.query.get("access_token", ""), least_age=REFRESHABLE)

    @call("container")
    async def make(self, request: web.Request) -> web.Response:
        account = request.match_info["account"]
        form = {name: str(text) for name, text in (await request.post()).items()}
        kind = form.get("media_type") or "IMAGE"
        if len(form.get("caption", "")) > _LONGEST_CAPTION:
            return self.failure(36004, 2207010, "The caption was too long. Max 2200 characters.")
        children = [each for each in form.get("children", "").split(",") if each]
        if kind == "CAROUSEL" and not 2 <= len(children) <= 10:
            return self.failure(100, 2207028, "Carousels need at least 2 photos/videos and no more than 10")
        if any(each not in self.containers or not self.containers[each].is_child for each in children):
            return self.failure(100, None, "The parameter children is not valid")
        if any(self._state(self.containers[each]) != "FINISHED" for each in children):
            self.problem("a carousel was made before its parts were FINISHED")
            return self.failure(9007, 2207027, "The media is not ready")
        urls = [form[name] for name in ("image_url", "video_url") if form.get(name)]
        if kind != "CAROUSEL" and len(urls) != 1:
            return self.failure(100, 2207023, "The media type is unknown.")
        if not all(url.isascii() for url in urls) or (digests := await self._fetched(urls)) is None:
            return self.failure(9004, 2207052, "The media could not be fetched from this URI")
        container = Container(
            id=f"18{self.number():015d}",
            account=account,
            kind=kind,
            caption="" if kind == "STORIES" else form.get("caption", ""),
            urls=[url for each in children for url in self.containers[each].urls] or urls,
            digests=[digest for each in children for digest in self.containers[each].digests] or digests,
            is_child=form.get("is_carousel_item") == "true",
            made=self.clock.now(),
            polls=self.processing_polls,
            seconds=self.processing_seconds,
            error=self.processing_error,
            children=children,
        )
        self.containers[container.id] = container
        return web.json_response({"id": container.id})

    @call("status")
    async def status(self, request: web.Request) -> web.Response:
        container = self.containers.get(request.match_info["node"])
        if container is None:
            return self.absent()
        state = self._state(container)
        container.polls = max(0, container.polls - 1)
        words = f"Error: Media upload has failed with error code {container.error}" if state == "ERROR" else state
        return web.json_response({"id": container.id, "status_code": state, "status": words})

    @call("media_publish")
    async def publish(self, request: web.Request) -> web.Response:
        account, form = request.match_info["account"], await request.post()
        container = self.containers.get(str(form.get("creation_id", "")))
        if container is None or container.account != account or container.is_child:
            return self.failure(24, 2207006, "The media cannot be found")
        match self._state(container):
            case "PUBLISHED":
                return self.failure(100, None, "The media has already been published")
            case "EXPIRED":
                self.problem(f"container {container.id} was published after its 24 hours")
                return self.failure(24, 2207008, "The media builder does not exist or has expired")
            case "FINISHED":
                pass
            case state:
                self.problem(f"container {container.id} was published while {state}")
                return self.failure(9007, 2207027, "The media is not ready for publishing")
        if self._used(account) >= self.quota_total:
            return self.failure(9, 2207042, "You reached maximum number of posts that is allowed to be published")
        product = {"REELS": "REELS", "STORIES": "STORY"}.get(container.kind, "FEED")
        media = self._media(account, container.caption, product)
        self.media[media.id] = media
        container.media = media.id
        channel = "instagram_story" if product == "STORY" else "instagram_feed"
        shown = container.digests or container.urls
        self.effect(account, id=media.id, channel=channel, text=media.caption, media=shown, container=container.id)
        return web.json_response({"id": media.id})

    @call("media")
    async def list_media(self, request: web.Request) -> web.Response:
        account, since = request.match_info["account"], int(request.query.get("since", "0"))
        media = [
            self._shown(each)
            for each in reversed(self.media.values())
            if each.account == account and each.product != "STORY" and each.time.timestamp() >= since
        ]
        return self.listed(request, media)

    @call("show")
    async def show(self, request: web.Request) -> web.Response:
        media = self.media.get(request.match_info["node"])
        return self.absent() if media is None else web.json_response(self._shown(media))

    @call("limit")
    async def limit(self, request: web.Request) -> web.Response:
        config = {"quota_total": self.quota_total, "quota_duration": int(_WINDOW.total_seconds())}
        used = self._used(request.match_info["account"])
        return web.json_response({"data": [{"quota_usage": used, "config": config}]})

    @call("comment")
    async def add_comment(self, request: web.Request) -> web.Response:
        node, form = request.match_info["node"], await request.post()
        if node not in self.media:
            return self.absent()
        comment = self._media(self.media[node].account, str(form.get("message", "")), "COMMENT")
        self.comments.setdefault(node, []).append(comment)
        channel = "instagram_feed"
        self.effect(comment.account, id=comment.id, channel=channel, text=comment.caption, follows=node, media=[])
        return web.json_response({"id": comment.id})

    @call("comments")
    async def list_comments(self, request: web.Request) -> web.Response:
        node = request.match_info["node"]
        if node not in self.media:
            return self.absent()
        owner = self.media[node].account
        comments = [
            {"id": each.id, "text": each.caption, "timestamp": each.stamp, "from": {"id": f"scoped-{each.account}"}}
            # Only the account that asks is named by the id that it has elsewhere.
            | ({"user": {"id": owner}} if each.account == owner else {})
            for each in reversed(self.comments.get(node, []))
        ]
        return self.listed(request, comments)

    def write(self, account: str, caption: str) -> str:
        """Has somebody else post something to the account; returns its id."""
        media = self._media(account, caption, "FEED")
        self.media[media.id] = media
        return media.id

    def comment_as(self, account: str, node: str, text: str) -> None:
        """Has somebody comment on a post."""
        self.comments.setdefault(node, []).append(self._media(account, text, "COMMENT"))

    def _media(self, account: str, caption: str, product: str) -> Media:
        return Media(f"17{self.number():015d}", account, caption, product, self.stamp(), self.clock.now())

    def _state(self, container: Container) -> str:
        age = self.clock.now() - container.made
        if container.media:
            return "PUBLISHED"
        if age >= _LIFE:
            return "EXPIRED"
        if container.polls or age < timedelta(seconds=container.seconds):
            return "IN_PROGRESS"
        return "ERROR" if container.error else "FINISHED"

    def _used(self, account: str) -> int:
        since = self.clock.now() - _WINDOW
        made = {each.media for each in self.containers.values()}
        return sum(each.account == account and each.time > since and each.id in made for each in self.media.values())

    def _shown(self, media: Media) -> Mapping[str, Any]:
        shown = {"id": media.id, "timestamp": media.stamp, "media_product_type": media.product}
        shown["permalink"] = f"https://www.instagram.com/p/{media.id}/"
        return shown | ({"caption": media.caption} if media.caption else {})

    async def _fetched(self, urls: list[str]) -> list[str] | None:
        """Returns the digests of what is at the addresses; None if one cannot be fetched."""
        if not self.fetches_media:
            return []
        digests = []
        async with aiohttp.ClientSession(timeout=_FETCHED_WITHIN) as session:
            for url in urls:
                try:
                    async with session.get(url) as answer:
                        body = await answer.read()
                except (aiohttp.ClientError, TimeoutError):
                    return None
                if answer.status != 200:
                    return None
                digests.append(hashlib.sha256(body).hexdigest())
        return digests


def _login_failure(message: str) -> web.Response:
    return web.json_response({"error_type": "OAuthException", "code": 400, "error_message": message}, status=400)
