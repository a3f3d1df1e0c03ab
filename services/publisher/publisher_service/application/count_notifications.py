"""Counts what is overdue, and walks through the secrets of webhooks, so that older keys can be removed."""

import logging

from opentelemetry import metrics

from publisher_service.adapters.postgres.notification_lines import oldest_due
from publisher_service.adapters.postgres.subscriptions import (
    SealedSecrets,
    count_paused_subscriptions,
    list_sealed_secrets,
    reseal_secrets,
)
from publisher_service.adapters.vault import CredentialsUnreadable, Vault, key_id_of
from publisher_service.adapters.webhook_secrets import open_secret, seal_secret
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_age = _meter.create_gauge(
    "postflow.notifications.due_age",
    unit="s",
    description="Time since the first of the deliveries that wait was due, by channel",
)
_paused = _meter.create_gauge("postflow.notifications.paused_webhooks", description="Webhooks that are paused")
_sealed_otherwise = _meter.create_gauge(
    "postflow.notifications.secrets_to_reseal", description="Webhooks with a secret that another key has sealed"
)
_CHANNELS = {"EMAIL": True, "WEBHOOK": False}
_MOST_COUNTED = 10_000
_PAGE = 100


class CountNotifications:
    def __init__(self, *, database: Database, clock: DatabaseClock, vault: Vault, is_mail_on: bool) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        # While e-mail is off, no mail is overdue.
        self._channels = [name for name, mail in _CHANNELS.items() if is_mail_on or not mail]
        self._after = ("", "")
        self._left = 0
        for name in _CHANNELS:
            _age.set(0, {"channel": name})
        _paused.set(0)
        _sealed_otherwise.set(0)

    async def count(self) -> None:
        for name, seconds in (await self.overdue()).items():
            _age.set(seconds, {"channel": name})
        async with self._database.read() as connection:
            _paused.set(await count_paused_subscriptions(connection, most=_MOST_COUNTED))

    async def overdue(self) -> dict[str, float]:
        """Returns the seconds since the first of the deliveries that wait was due, by channel."""
        ages: dict[str, float] = {}
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            for name in self._channels:
                oldest = await oldest_due(connection, mail=_CHANNELS[name], now=now)
                ages[name] = (now - oldest).total_seconds() if oldest else 0.0
        return ages

    async def reseal(self) -> bool:
        """Seals a page of secrets with the first key of the ring. Returns whether the walk goes on."""
        async with self._database.read() as connection:
            page = await list_sealed_secrets(connection, after=self._after, limit=_PAGE)
        for each in page:
            await self._reseal(each)
        if len(page) == _PAGE:
            self._after = (page[-1].organization_id, page[-1].id)
            return True
        _sealed_otherwise.set(self._left)
        self._after, self._left = ("", ""), 0
        return False

    async def _reseal(self, stored: SealedSecrets) -> None:
        if all(key_id_of(each) == self._vault.current for each in _texts(stored)):
            return
        try:
            sealed = [self._again(stored, each) for each in _texts(stored)]
        except CredentialsUnreadable:
            self._left += 1
            _log.error("a secret of webhook %s opens with no key of this process", stored.id)
            return
        # A single statement, which commits by itself, and changes nothing if the secrets are others by now.
        async with self._database.statement() as connection:
            await reseal_secrets(connection, stored, sealed[0], sealed[1] if len(sealed) > 1 else None)

    def _again(self, stored: SealedSecrets, sealed: bytes) -> bytes:
        names = {"organization_id": stored.organization_id, "subscription_id": stored.id}
        return seal_secret(self._vault, open_secret(self._vault, sealed, **names), **names)


def _texts(stored: SealedSecrets) -> list[bytes]:
    return [stored.secret, *([] if stored.former_secret is None else [stored.former_secret])]
