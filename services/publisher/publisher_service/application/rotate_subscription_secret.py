"""RotateSubscriptionSecret: makes another secret, beside which the former one signs until the overlap ends."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.subscriptions import (
    SealedSecrets,
    lock_subscription,
    secrets_of,
    set_secrets,
)
from publisher_service.adapters.standard_webhooks import new_secret
from publisher_service.adapters.vault import Vault
from publisher_service.adapters.webhook_secrets import seal_secret
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.subscription import Subscription, require_subscription
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call
from servicekit.run.settings import Secret

R = TypeVar("R")


class RotateSubscriptionSecret:
    def __init__(self, *, changes: NotificationChanges, vault: Vault) -> None:
        self._changes = changes
        self._vault = vault

    async def __call__(self, call: Call[tuple[Subscription, Secret], R], subscription_id: str, overlap: timedelta) -> R:
        return await self._changes.once(call, partial(self._rotate, (call.organization_id, subscription_id), overlap))

    async def _rotate(
        self, key: tuple[str, str], overlap: timedelta, tx: Transaction, now: datetime
    ) -> tuple[Subscription, Secret]:
        organization_id, subscription_id = key
        known = require_subscription(await lock_subscription(tx.connection, *key), subscription_id)
        before = await secrets_of(tx.connection, known)
        secret = new_secret()
        sealed = seal_secret(self._vault, secret, organization_id=organization_id, subscription_id=subscription_id)
        # Of a rotation within the overlap of another, the oldest secret ends at once: two sign at most.
        end = now + overlap if overlap else None
        after = SealedSecrets(
            organization_id=organization_id,
            id=subscription_id,
            secret=sealed,
            former_secret=before.secret if overlap else None,
            former_secret_end_time=end,
        )
        await set_secrets(tx.connection, after)
        return replace(known, former_secret_end_time=end), secret
