"""CreateSubscription: adds a webhook with a secret, which leaves this process in the answer alone."""

from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.subscriptions import count_subscriptions, insert_subscription
from publisher_service.adapters.standard_webhooks import new_secret
from publisher_service.adapters.vault import Vault
from publisher_service.adapters.webhook_secrets import seal_secret
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.subscription import (
    MOST_SUBSCRIPTIONS,
    Subscription,
    SubscriptionChange,
    created,
)
from servicekit.faults import AlreadyExists, LimitReached
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call
from servicekit.run.settings import Secret

R = TypeVar("R")


class CreateSubscription:
    def __init__(self, *, changes: NotificationChanges, ids: IdSource, vault: Vault, webhooks: Webhooks) -> None:
        self._changes = changes
        self._ids = ids
        self._vault = vault
        self._webhooks = webhooks

    async def __call__(self, call: Call[tuple[Subscription, Secret], R], wanted: SubscriptionChange) -> R:
        return await self._changes.once(call, lambda tx, now: self._create(tx, now, wanted))

    async def _create(self, tx: Transaction, now: datetime, wanted: SubscriptionChange) -> tuple[Subscription, Secret]:
        subscription = created(wanted, wanted.id or self._ids.new(), now=now)
        self._webhooks.require_url(subscription.url, field="subscription.url")
        secret = new_secret()
        sealed = seal_secret(
            self._vault, secret, organization_id=subscription.organization_id, subscription_id=subscription.id
        )
        if not await insert_subscription(tx.connection, subscription, sealed):
            raise AlreadyExists(
                "SUBSCRIPTION_EXISTS", "there is a webhook of that id", metadata={"subscription_id": subscription.id}
            )
        # Behind the insert. Two at once may exceed the limit by one: it bounds, and counts nothing.
        if await count_subscriptions(tx.connection, subscription.organization_id) > MOST_SUBSCRIPTIONS:
            raise LimitReached(
                "SUBSCRIPTION_LIMIT_REACHED", f"an organization has {MOST_SUBSCRIPTIONS} webhooks at most"
            )
        return subscription, secret
