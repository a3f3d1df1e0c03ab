"""The providers of this release: an adapter of each network, and connections of its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.adapter import Adapter
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.adapters.providers.instagram_sign_in import InstagramSignIn
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.adapters.providers.linkedin_page import LinkedInPageAdapter
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.adapters.providers.sandbox_blind import SandboxBlindAdapter
from publisher_service.adapters.providers.sandbox_container import SandboxContainerAdapter
from publisher_service.adapters.providers.sandbox_lookup import SandboxLookupAdapter
from publisher_service.adapters.providers.smtp import SmtpAdapter
from publisher_service.adapters.providers.telegram import TelegramAdapter
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.settings import Settings
from servicekit.clock import Clock
from servicekit.run.settings import Secret

# Tokens are asked for now and then.
_FEW: Final = 8


class Networks:
    """Makes the adapters. Each has connections of its own, so that a network that hangs takes none from the others."""

    def __init__(self, settings: Settings, *, media: MediaSource, outside: Outside, clock: Clock) -> None:
        """`outside` is the way to servers that users name."""
        self._settings = settings
        self._outside = outside
        self._media = media
        self._clock = clock
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self.adapters: Sequence[Adapter] = [
            *self._sandboxes(),
            *self._meta(),
            *self._linkedin(),
            self._telegram(),
            *self._mail(),
        ]

    async def close(self) -> None:
        for close in self._closers:
            await close()

    def _sandboxes(self) -> list[Adapter]:
        url, limits = self._settings.sandbox_url, self._settings.limits
        return [
            make(self._origin(url, limits.senders * 2), limits)
            for make in (SandboxAdapter, SandboxContainerAdapter, SandboxLookupAdapter, SandboxBlindAdapter)
        ]

    def _meta(self) -> list[Adapter]:
        settings, limits = self._settings, self._settings.network_limits
        facebook = self._origin(settings.facebook_url, limits.senders * 2)
        instagram = self._origin(settings.instagram_url, limits.senders * 2)
        version, scopes = settings.graph_version, settings.instagram_more_scopes
        app = _application(settings.facebook_app_id, settings.facebook_app_secret, settings.facebook_more_scopes)
        sign_in = InstagramSignIn(
            app=_application(settings.instagram_app_id, settings.instagram_app_secret, scopes)
            or _application(settings.facebook_app_id, settings.facebook_app_secret, scopes),
            codes=self._origin(settings.instagram_codes_url, _FEW),
            dialog_url=settings.instagram_dialog_url,
        )
        return [
            FacebookAdapter(
                facebook,
                limits,
                media=self._media,
                version=version,
                app=app,
                dialog_url=settings.facebook_dialog_url,
            ),
            InstagramAdapter(instagram, limits, media=self._media, clock=self._clock, version=version, sign_in=sign_in),
        ]

    def _linkedin(self) -> list[Adapter]:
        settings, limits = self._settings, self._settings.network_limits
        version, scopes = settings.linkedin_version, settings.linkedin_more_scopes
        app = _application(settings.linkedin_app_id, settings.linkedin_app_secret, scopes)
        pages_app = _application(settings.linkedin_page_app_id, settings.linkedin_page_app_secret, scopes) or app
        profiles, pages = (self._origin(settings.linkedin_url, limits.senders * 2) for _ in range(2))
        sign_in = self._origin(settings.linkedin_sign_in_url, _FEW)
        media, clock = self._media, self._clock
        profile = LinkedInAdapter(profiles, limits, version=version, media=media, clock=clock, app=app, sign_in=sign_in)
        page = LinkedInPageAdapter(
            pages, limits, version=version, media=media, clock=clock, app=pages_app, sign_in=sign_in
        )
        self._closers += [profile.close, page.close]
        return [profile, page]

    def _telegram(self) -> Adapter:
        limits = replace(self._settings.network_limits, request_timeout=self._settings.request_timeout)
        origin = self._origin(self._settings.telegram_url, limits.senders * 2)
        return TelegramAdapter(origin, limits, media=self._media, clock=self._clock)

    def _mail(self) -> list[Adapter]:
        settings, limits = self._settings, self._settings.network_limits
        short = replace(limits, request_timeout=settings.request_timeout)
        unipile = self._origin(settings.unipile_url, limits.senders * 2)
        return [
            UnipileAdapter(unipile, short, api_key=settings.unipile_api_key, media=self._media),
            SmtpAdapter(self._outside, short, media=self._media),
            WebhookAdapter(self._outside, short, clock=self._clock),
        ]

    def _origin(self, url: str, connections: int) -> HttpOrigin:
        origin = HttpOrigin(url, connections=connections)
        self._closers.append(origin.close)
        return origin


def _application(client_id: str, client_secret: Secret, more_scopes: str) -> Application | None:
    if not client_id:
        return None
    scopes = tuple(more_scopes.split())
    return Application(client_id=client_id, client_secret=client_secret.reveal(), more_scopes=scopes)
