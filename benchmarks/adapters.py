"""Measures what a post costs in the adapter of each network, beside that of the sandbox, and the check of a content.

The fakes run on a thread of their own; CPU is that of the thread that sends.
"""

import asyncio
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from benchmarks.result import Result, percentile
from devstack.networks.facebook import FacebookNetwork
from devstack.networks.instagram import InstagramNetwork
from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.telegram import Chat, Telegram
from devstack.networks.unipile import KEY, MAILBOX, Unipile
from devstack.networks.webhook_receiver import SECRET, WebhookReceiver
from devstack.sandbox.provider import Sandbox
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DraftContent
from postflow.publisher.v1.publisher_service_pb2 import ValidateContentRequest
from postflow.target.v1.target_pb2 import Target
from publisher_service.adapters.media.fetcher import MediaFetcher, Pace
from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.media.post_media import PostMedia
from publisher_service.adapters.media.spool import Room, Spool
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.places import Places
from publisher_service.adapters.providers.adapter import Adapter, Limits, Post, PreparingAdapter
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.linkedin_page import LinkedInPageAdapter
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.providers.smtp import SmtpAdapter
from publisher_service.adapters.providers.telegram import TelegramAdapter
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.media import MediaCaps
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.preparation import Processing, Ready
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret
from testkit.smtp_server import SmtpServer
from testkit.stack.tenant import Clients, Tenant

_WARM = 100
_LIMITS = Limits(request_timeout=timedelta(seconds=10))
_TOKEN = "sandbox-token"  # noqa: S105 - the fakes take it
_BOT = f"110201543:{_TOKEN}"
_SENDER = "shop@example.com"
_POST = Post(
    external_account_id="100200",
    access_token=_TOKEN,
    channel="facebook",
    destination="",
    text="",
    idempotency_key="",
    organization_id="acme",
)


# Instagram takes no post without media.
_KINDS = {"instagram": "a post with a picture, prepared,"}
_PAGE_TOKEN = "sandbox-token-of-page"  # noqa: S105 - likewise
_PAGE = "urn:li:organization:2414183"
_MOST_BYTES = 1_000_000


def measure(posts: int) -> list[Result]:
    return [*asyncio.run(_of_adapters(posts)), *asyncio.run(_of_checks(posts))]


async def _of_adapters(posts: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder, _Fakes(Path(folder)) as fakes:
        async with _adapters(fakes) as adapters:
            spent = {name: await _spent(adapter, post, posts) for name, (adapter, post) in adapters.items()}
    floor = spent["sandbox"]
    return [
        Result(
            name=f"{_KINDS.get(name, 'a text post')} through the adapter of {name}",
            value=seconds * 1e6,
            unit="us of CPU",
            baseline=floor * 1e6,
            note="the adapter of the sandbox",
        )
        for name, seconds in spent.items()
    ]


async def _spent(adapter: Adapter, post: Post, posts: int) -> float:
    """Returns the seconds of CPU of a post, one after another, with the preparation of one that has no handle."""
    begun = 0.0
    for number in range(_WARM + posts):
        if number == _WARM:
            begun = time.thread_time()
        each = replace(post, text=f"Post {number}", idempotency_key=f"job-{number}")
        outcome = await adapter.send(await _prepared(adapter, each))
        assert isinstance(outcome, Accepted), outcome
    return (time.thread_time() - begun) / posts


async def _prepared(adapter: Adapter, post: Post) -> Post:
    if post.handle or not isinstance(adapter, PreparingAdapter):
        return post
    step = await adapter.prepare(post)
    while isinstance(step, Processing):
        step = await adapter.check(replace(post, handle=step.handle))
    assert isinstance(step, Ready), step
    return replace(post, handle=step.handle)


async def _of_checks(calls: int) -> list[Result]:
    """Measures ValidateContent over gRPC: two targets of a connected account."""
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(Path(folder) / "state") as stack:
            clients = Clients(stack.targets)
            try:
                tenant = Tenant(clients, "acme")
                await tenant.connect()
                request = ValidateContentRequest(
                    organization_id="acme",
                    content=DraftContent(text="Hello #one @two " * 20, hashtags=["three", "four"]),
                    targets=[Target(social_account_id="page", channel=each) for each in ("facebook", "instagram_feed")],
                )
                took = [await _timed(clients.publisher.ValidateContent, request) for _ in range(_WARM + calls)][_WARM:]
            finally:
                await clients.close()
    return [Result(name="ValidateContent, p50", value=percentile(took, 0.5) * 1e3, unit="ms", target=1.0)]


async def _timed(call: Callable[[ValidateContentRequest], Awaitable[object]], request: ValidateContentRequest) -> float:
    begun = time.perf_counter()
    await call(request)
    return time.perf_counter() - begun


@asynccontextmanager
async def _adapters(fakes: "_Fakes") -> AsyncIterator[Mapping[str, tuple[Adapter, Post]]]:
    urls, clock = fakes.urls, SystemClock()
    origins = {name: HttpOrigin(url, connections=4) for name, url in urls.items()}
    local = {
        ("127.0.0.1", port)
        for port in (fakes.mail_port, urlsplit(urls["webhook"]).port, urlsplit(fakes.picture_url).port)
        if port
    }
    outside = Outside(private_hosts=local)
    fetcher = MediaFetcher(
        outside,
        Places(1, share=1),
        caps=MediaCaps(image=_MOST_BYTES, video=1, document=1),
        pace=Pace(in_all=timedelta(seconds=5)),
    )
    media = PostMedia(MediaFiles(fetcher, Spool(Room(4 * _MOST_BYTES, share=4 * _MOST_BYTES))))
    linkedin = LinkedInAdapter(origins["linkedin"], _LIMITS, version=VERSION, media=media, clock=clock)
    member = replace(_POST, external_account_id="782bbtaQ", channel="linkedin_profile")
    message = replace(
        _POST, external_account_id="110201543", access_token=_BOT, channel="telegram", destination="@example"
    )
    mail = replace(
        _POST, external_account_id=MAILBOX, channel="email", destination="ann@example.com", title="Hello", handle="{}"
    )
    hook = replace(
        _POST,
        external_account_id="hook",
        access_token=SECRET,
        channel="webhook",
        settings={"url": f"{urls['webhook']}/hook"},
    )
    letter = replace(
        mail,
        external_account_id=_SENDER,
        settings={"host": "127.0.0.1", "port": str(fakes.mail_port), "security": "plain"},
        schedule_time=clock.now(),
    )
    page = LinkedInPageAdapter(origins["linkedin"], _LIMITS, version=VERSION, media=media, clock=clock)
    picture = replace(
        _POST,
        external_account_id="300400",
        channel="instagram_feed",
        media=(ContentMedia(url=fakes.picture_url, alt_text="", sha256=""),),
    )
    try:
        yield {
            "sandbox": (SandboxAdapter(origins["sandbox"], _LIMITS), _POST),
            "facebook": (FacebookAdapter(origins["facebook"], _LIMITS, media=media), replace(_POST, handle="text")),
            "instagram": (InstagramAdapter(origins["instagram"], _LIMITS, media=media, clock=clock), picture),
            "linkedin": (linkedin, replace(member, handle="text")),
            "linkedin-page": (
                page,
                replace(
                    member, external_account_id=_PAGE, access_token=_PAGE_TOKEN, channel="linkedin_page", handle="text"
                ),
            ),
            "telegram": (TelegramAdapter(origins["telegram"], _LIMITS, media=media, clock=clock), message),
            "unipile": (UnipileAdapter(origins["unipile"], _LIMITS, api_key=Secret(KEY), media=media), mail),
            "webhook": (WebhookAdapter(outside, _LIMITS, clock=clock), hook),
            "smtp": (SmtpAdapter(outside, _LIMITS, media=media), letter),
        }
    finally:
        await linkedin.close()
        await page.close()
        for origin in origins.values():
            await origin.close()


class _Fakes:
    """The sandbox and the fakes of networks, on a loop and a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self.urls: dict[str, str] = {}
        self.mail_port = 0
        self.picture_url = ""
        self._folder = folder
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def __enter__(self) -> "_Fakes":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        linkedin, telegram, instagram = LinkedIn(), Telegram(), InstagramNetwork()
        linkedin.grant(_TOKEN, "urn:li:person:782bbtaQ")
        linkedin.grant(_PAGE_TOKEN, _PAGE)
        instagram.quota_total = 10**9
        telegram.add_bot(_BOT, "example_bot")
        telegram.add_chat(Chat(-1001234567890, username="example"))
        networks = {
            "facebook": FacebookNetwork(),
            "instagram": instagram,
            "linkedin": linkedin,
            "telegram": telegram,
            "unipile": Unipile(),
            "webhook": WebhookReceiver(),
        }
        mails = SmtpServer(users={_SENDER: _TOKEN})
        async with Sandbox(self._folder / "sandbox.jsonl") as sandbox, mails, _picture() as self.picture_url:
            self.urls["sandbox"], self.mail_port = sandbox.url, mails.port
            for name, network in networks.items():
                await network.start()
                self.urls[name] = network.url
            self._ready.set()
            await self._stop.wait()
            for network in networks.values():
                await network.stop()


@asynccontextmanager
async def _picture() -> AsyncIterator[str]:
    """Serves a picture of 1080 by 1080 pixels, and yields its address."""
    content = _png(1080)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content, content_type="image/png")

    app = web.Application()
    app.router.add_get("/picture.png", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/picture.png"
    finally:
        await runner.cleanup()


def _png(side: int) -> bytes:
    """Returns a gray picture."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * side) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
