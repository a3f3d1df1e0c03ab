"""LinkedIn on a clock that a test moves, with an adapter of members or of pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from devstack.networks.linkedin import VERSION, LinkedIn
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.linkedin_page import LinkedInPageAdapter
from publisher_service.domain.outcome import Outcome
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, prepared
from tests.contract.publisher_service.scenes_linkedin import MEMBER, PAGE, PAGE_POST, POST, TOKEN


@dataclass
class LinkedInRig:
    network: LinkedIn
    clock: FrozenClock
    adapter: LinkedInAdapter | LinkedInPageAdapter
    media: MediaFolder
    plain: Post
    # The servers that were named for uploads; the network serves for all of them.
    connected: list[str] = field(default_factory=list)

    def post(self, text: str = "hello", *, again: bool = False, **facts: Any) -> Post:
        """Returns a post; `again`: one of a run whose first request began a second ago."""
        since = self.clock.now() - timedelta(seconds=1) if again else None
        return replace(self.plain, text=text, since=since, **facts)

    async def send(self, post: Post) -> Outcome:
        return await self.adapter.send(await prepared(self.adapter, post))

    @property
    def texts(self) -> list[str]:
        return [each["text"] for each in self.network.effects]

    @property
    def requests(self) -> list[str]:
        return [name for name, _ in self.network.calls]


@asynccontextmanager
async def linkedin_rig(folder: Path, *, is_page: bool = False, version: str = VERSION) -> AsyncIterator[LinkedInRig]:
    clock, media = FrozenClock(), MediaFolder(folder)
    async with LinkedIn(clock=clock) as network:
        network.grant(TOKEN, PAGE if is_page else MEMBER)
        origin = HttpOrigin(network.url, connections=4)
        make = LinkedInPageAdapter if is_page else LinkedInAdapter
        connected: list[str] = []

        def connect(url: str) -> HttpOrigin:
            connected.append(url)
            return HttpOrigin(network.url, connections=1)

        adapter = make(origin, LIMITS, version=version, media=media, clock=clock, connect=connect)
        yield LinkedInRig(network, clock, adapter, media, PAGE_POST if is_page else POST, connected)
        await adapter.close()
        await origin.close()
        assert network.problems == []
