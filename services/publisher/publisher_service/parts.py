"""The parts of a publisher process that several use cases share."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from publisher_service.adapters.media.fetcher import MediaFetcher, Pace
from publisher_service.adapters.media.files import MediaFiles
from publisher_service.adapters.media.post_media import PostMedia
from publisher_service.adapters.media.spool import Room, Spool
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.places import Places
from publisher_service.adapters.outside.urls import read_private_hosts
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import Vault, read_keys
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.application.finish_connect import FinishConnect
from publisher_service.application.follow_quotas import FollowQuotas
from publisher_service.application.inspect_media import InspectMedia
from publisher_service.application.keep_marks import KeepMarks
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.marks import Marks
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.policy import Policy
from publisher_service.domain.rare_work import Work
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.wake_up import WakeUp
from publisher_service.networks import Networks
from publisher_service.settings import Settings, half
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
        # All that reaches an address that a user named goes through it.
        self.outside = Outside(private_hosts=read_private_hosts(settings.outside_private_hosts))
        self.media_files = _media_files(settings, self.outside)
        self.inspect_media = InspectMedia(
            database=self.backbone.database,
            clock=self.backbone.clock,
            files=self.media_files,
            life=settings.media_facts_life,
        )
        self._networks = Networks(
            settings, media=PostMedia(self.media_files), outside=self.outside, clock=self.backbone.system
        )
        self.providers = Providers(self._networks.adapters, self.backbone.system)
        self.webhooks = Webhooks(self.outside, timeout=settings.webhook_timeout)
        self.mail_post = settings.mail_post
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
        self.storing = StoringAccount(
            database=self.backbone.database,
            ids=self.backbone.ids,
            outbox=self.backbone.outbox,
            vault=self.vault,
            providers=self.providers,
            on_connected=self.on_gate_opened,
        )
        self.finish_connect = FinishConnect(
            database=self.backbone.database,
            clock=self.backbone.clock,
            ledger=self.backbone.ledger,
            vault=self.vault,
            storing=self.storing,
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
        await self._networks.close()

    async def close_media(self) -> None:
        await self.inspect_media.close()
        await self.media_files.close()

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

    def on_notification_due(self) -> None:
        self.wakes[Work.SEND_MAILS].set()
        self.wakes[Work.CALL_WEBHOOKS].set()

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


def _media_files(settings: Settings, outside: Outside) -> MediaFiles:
    fetcher = MediaFetcher(
        outside,
        Places(settings.media_fetches, share=half(settings.media_fetches)),
        caps=settings.media_caps,
        pace=Pace(in_all=settings.media_fetch_time),
    )
    room = Room(settings.media_spool_bytes, share=half(settings.media_spool_bytes))
    return MediaFiles(fetcher, Spool(room, parent=Path(folder) if (folder := settings.media_spool_folder) else None))
