"""A real network's adapter at its fake, as the conformance suite of networks uses them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from devstack.networks.network import Network
from publisher_service.adapters.providers.adapter import Adapter, Limits, Post, PreparingAdapter
from publisher_service.domain.outcome import Finding, Outcome
from publisher_service.domain.preparation import Processing, Ready
from servicekit.clock import SystemClock

LIMITS = Limits(request_timeout=timedelta(milliseconds=500), prepare_timeout=timedelta(seconds=5))
_MOST_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A fake that serves, an adapter of it, and a post that it takes."""

    network: Network
    adapter: Adapter
    # With a token that the fake accepts.
    post: Post
    # What the fake calls the request that puts a post out, and the one that looks for it; empty if there is no look.
    publish: str
    look: str = ""
    # Whose answer differs from that of most networks: the kinds that are right, too, by the name of the case.
    also: dict[str, tuple[type[Outcome], ...]] = field(default_factory=dict)
    # Whether the network refuses the same post a second time, or ignores it.
    is_repeatable: bool = False
    # Whether the network accepts by its status alone, no matter what the body says.
    any_2xx_accepts: bool = False
    # What to change in the post so that its credentials are refused.
    revoked: Mapping[str, str] = field(default_factory=lambda: {"access_token": "revoked-5f0c91d2"})
    findings: dict[str, tuple[type[Finding], ...]] = field(default_factory=dict)

    async def ready(self, text: str = "hello", key: str = "job-1") -> Post:
        """Returns a post that may be sent: prepared, where the adapter prepares."""
        post = replace(self.post, text=text, idempotency_key=key, since=SystemClock().now() - timedelta(seconds=1))
        return await prepared(self.adapter, post)


class MakeScene(Protocol):
    """Opens a scene in a folder of its own."""

    name: str

    def __call__(self, folder: Path) -> AbstractAsyncContextManager[Scene]: ...


def named(name: str) -> Callable[[Callable[[Path], AbstractAsyncContextManager[Scene]]], MakeScene]:
    def as_scene(make: Callable[[Path], AbstractAsyncContextManager[Scene]]) -> MakeScene:
        make.name = name  # type: ignore[attr-defined]
        return make  # type: ignore[return-value]

    return as_scene


async def prepared(adapter: Adapter, post: Post) -> Post:
    """Goes through all steps of a preparation, each by what the one before has stored."""
    if not isinstance(adapter, PreparingAdapter):
        return post
    step = await adapter.prepare(post)
    for _ in range(_MOST_STEPS):
        match step:
            case Ready(handle=handle):
                return replace(post, handle=handle)
            case Processing(handle=handle):
                step = await adapter.check(replace(post, handle=handle))
            case _:
                raise AssertionError(step)
    raise AssertionError(f"not prepared after {_MOST_STEPS} steps: {step}")
