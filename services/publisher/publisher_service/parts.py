"""The parts of a publisher process that several use cases share."""

import asyncio
from collections.abc import Callable

from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.providers.sandbox_blind import SandboxBlindAdapter
from publisher_service.adapters.providers.sandbox_container import SandboxContainerAdapter
from publisher_service.adapters.providers.sandbox_lookup import SandboxLookupAdapter
from publisher_service.adapters.vault import Vault, read_keys
from publisher_service.application.follow_quotas import FollowQuotas
from publisher_service.application.keep_marks import KeepMarks
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.marks import Marks
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.domain.policy import Policy
from publisher_service.domain.rare_work import Work
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.wake_up import WakeUp
from publisher_service.settings import Settings
from publisher_service.wire import watching
from servicekit.backbone import Backbone
from servicekit.bus.feed import Feed
from servicekit.bus.register import Register
from servicekit.pg.clock import SteadyClock


class Parts:
    """The parts that several use cases share."""

    def __init__(self, settings: Settings, backbone: Backbone) -> None:
        self.settings = settings
        self.backbone = backbone
        self.steady = SteadyClock(self.backbone.system)
        self.vault = Vault(read_keys(settings.credentials_key, settings.credentials_keys_file))
        # Connections of their own, so that one that hangs takes none from the others.
        self._origins = [HttpOrigin(settings.sandbox_url, connections=settings.senders * 2) for _ in range(4)]
        keyed, container, lookup, blind = self._origins
        self.providers = Providers(
            [
                SandboxAdapter(keyed, settings.limits),
                SandboxContainerAdapter(container, settings.limits),
                SandboxLookupAdapter(lookup, settings.limits),
                SandboxBlindAdapter(blind, settings.limits),
            ],
            self.backbone.system,
        )
        self.lanes = {provider.name: self._lane(provider) for provider in self.providers}
        self._policy = settings.policy
        self._policies = {provider.name: provider.policy(self._policy) for provider in self.providers}
        self.late = LateEvidence(self.backbone.outbox)
        self.marks = Marks(self.backbone.ids.new())
        self.keep_marks = KeepMarks(
            database=self.backbone.database,
            clock=self.backbone.clock,
            marks=self.marks,
            register=Register(self.backbone.nats, "publisher", replicas=settings.stream_replicas),
        )
        self.wake_up = WakeUp()
        # Each begins the step that does this work.
        self.wakes = {work: asyncio.Event() for work in Work}
        self.follow_quotas = FollowQuotas(
            database=self.backbone.database,
            clock=self.backbone.clock,
            close=self._close_lane,
            wake=self.wake_up.wake_lines,
        )
        self.due_now = asyncio.Event()
        self.save_drafts = SaveDrafts(self.backbone.outbox, self.due_now.set)
        self.watched_feed = _watched_feed(settings, self.backbone)

    def policy_of(self, name: str) -> Policy:
        """Returns the policy of a provider; the common one for a provider that only another release has."""
        return self._policies.get(name, self._policy)

    def lookers_of(self, name: str) -> int:
        provider = self.providers.get(name)
        return self.settings.limits.lookers if provider is None else provider.limits.lookers

    async def close_providers(self) -> None:
        for origin in self._origins:
            await origin.close()

    def _lane(self, provider: Provider) -> ProviderLane:
        lease = provider.limits.request_timeout + self.settings.lease_margin
        return ProviderLane(
            provider.name,
            senders=provider.limits.senders,
            lease=lease,
            prepares=provider.prepares,
            seconds=self.backbone.system.monotonic,
        )

    def _close_lane(self, provider: str, seconds: float) -> None:
        """Closes the lane of a provider; one that only another release has needs none."""
        if provider in self.lanes:
            self.lanes[provider].breaker.close_for(seconds)

    def wake(self, work: Work) -> Callable[[], None]:
        """Returns what begins the step that does this work."""
        return self.wakes[work].set

    def on_answer(self, provider: str) -> None:
        self.follow_quotas.answers_again(provider)
        self.wakes[Work.FOLLOW_QUOTAS].set()

    def on_gate_opened(self) -> None:
        self.wake_up.wake_lines()
        self.wakes[Work.RELABEL_LINES].set()

    def on_hold_ended(self) -> None:
        self.on_gate_opened()
        self.wakes[Work.FREE_POSTS].set()


def _watched_feed(settings: Settings, backbone: Backbone) -> Feed:
    return Feed(
        backbone.nats,
        stream=settings.events_stream.name,
        subjects=watching.SUBJECTS,
        decode=watching.hints,
        most=settings.watchers,
    )
