"""LinkedIn for members and for pages, and Telegram, as the conformance suite uses them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.telegram import Chat, Telegram
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.linkedin_page import LinkedInPageAdapter
from publisher_service.adapters.providers.telegram import TelegramAdapter
from servicekit.clock import SystemClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, MakeScene, Scene, named

MEMBER, PAGE, BOT = "urn:li:person:782bbtaQ", "urn:li:organization:2414183", "110201543"
TOKEN, BOT_TOKEN = "linkedin-canary-91b7", f"{BOT}:telegram-canary-91b7"

POST = Post(
    external_account_id="782bbtaQ",
    access_token=TOKEN,
    channel="linkedin_profile",
    destination="",
    text="hello",
    idempotency_key="job-1",
    organization_id="acme",
)
PAGE_POST = replace(POST, external_account_id=PAGE, channel="linkedin_page")
MESSAGE = replace(POST, external_account_id=BOT, access_token=BOT_TOKEN, channel="telegram", destination="@example")


@named("linkedin")
@asynccontextmanager
async def linkedin(folder: Path) -> AsyncIterator[Scene]:
    async with LinkedIn() as network:
        network.grant(TOKEN, MEMBER)
        origin = HttpOrigin(network.url, connections=4)
        adapter = LinkedInAdapter(origin, LIMITS, version=VERSION, media=MediaFolder(folder), clock=SystemClock())
        yield Scene(network=network, adapter=adapter, post=POST, publish="post", is_repeatable=True)
        await adapter.close()
        await origin.close()


@named("linkedin-page")
@asynccontextmanager
async def linkedin_page(folder: Path) -> AsyncIterator[Scene]:
    async with LinkedIn() as network:
        network.grant(TOKEN, PAGE)
        origin = HttpOrigin(network.url, connections=4)
        adapter = LinkedInPageAdapter(origin, LIMITS, version=VERSION, media=MediaFolder(folder), clock=SystemClock())
        yield Scene(network=network, adapter=adapter, post=PAGE_POST, publish="post", look="posts", is_repeatable=True)
        await adapter.close()
        await origin.close()


@named("telegram")
@asynccontextmanager
async def telegram(folder: Path) -> AsyncIterator[Scene]:
    async with Telegram() as network:
        network.add_bot(BOT_TOKEN, "example_bot")
        network.add_chat(Chat(-1001234567890, username="example"))
        origin = HttpOrigin(network.url, connections=4)
        adapter = TelegramAdapter(origin, LIMITS, media=MediaFolder(folder), clock=SystemClock())
        yield Scene(network=network, adapter=adapter, post=MESSAGE, publish="sendMessage")
        await origin.close()


MAKERS: tuple[MakeScene, ...] = (linkedin, linkedin_page, telegram)
