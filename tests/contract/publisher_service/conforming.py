"""The adapters of all classes as one conformance suite uses them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.providers.sandbox_blind import SandboxBlindAdapter
from publisher_service.adapters.providers.sandbox_container import SandboxContainerAdapter
from publisher_service.adapters.providers.sandbox_lookup import SandboxLookupAdapter
from publisher_service.domain.preparation import Processing, Ready
from servicekit.clock import SystemClock
from tests.contract.publisher_service.sandbox import POST

AnyAdapter = SandboxAdapter | SandboxContainerAdapter | SandboxLookupAdapter | SandboxBlindAdapter
ADAPTERS: Sequence[Callable[[HttpOrigin, Limits], AnyAdapter]] = (
    SandboxAdapter,
    SandboxContainerAdapter,
    SandboxLookupAdapter,
    SandboxBlindAdapter,
)


@dataclass(slots=True)
class Conforming:
    """An adapter, and the post that it may send: where posts are prepared, a prepared one."""

    adapter: AnyAdapter

    async def post(self, text: str = "hello", *, key: str = "job-1", follows: str = "") -> Post:
        post = replace(
            POST, text=text, idempotency_key=key, follows=follows, since=SystemClock().now() - timedelta(seconds=1)
        )
        if not isinstance(self.adapter, SandboxContainerAdapter):
            return post
        made = await self.adapter.prepare(post)
        assert isinstance(made, Processing), made
        prepared = replace(post, handle=made.handle)
        assert await self.adapter.check(prepared) == Ready(handle=made.handle)
        return prepared
