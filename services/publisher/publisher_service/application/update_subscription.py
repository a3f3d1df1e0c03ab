"""UpdateSubscription: changes a webhook, pauses it, or resumes it with what has waited."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.deliveries import pause_deliveries, resume_deliveries
from publisher_service.adapters.postgres.notification_lines import (
    lock_receiver,
    note_failures,
    rest_receiver,
    wake_receivers,
)
from publisher_service.adapters.postgres.subscriptions import lock_subscription, save_subscription
from publisher_service.adapters.webhooks import Webhooks
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.subscription import Subscription, SubscriptionChange, changed, require_subscription
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call

R = TypeVar("R")


class UpdateSubscription:
    def __init__(self, *, changes: NotificationChanges, webhooks: Webhooks, on_resumed: Callable[[], None]) -> None:
        """`on_resumed` is called when something may be due."""
        self._changes = changes
        self._webhooks = webhooks
        self._on_resumed = on_resumed

    async def __call__(self, call: Call[Subscription, R], change: SubscriptionChange) -> R:
        return await self._changes.once(call, lambda tx, now: self._update(tx, now, change))

    async def _update(self, tx: Transaction, now: datetime, change: SubscriptionChange) -> Subscription:
        if change.url is not None:
            self._webhooks.require_url(change.url, field="subscription.url")
        found = await lock_subscription(tx.connection, change.organization_id, change.id)
        known = require_subscription(found, change.id, etag=change.etag)
        after = changed(known, change, now=now)
        if after is not known:
            await save_subscription(tx.connection, after)
        if after.state is not known.state:
            await self._switch(tx, after, now)
        return after

    async def _switch(self, tx: Transaction, after: Subscription, now: datetime) -> None:
        await lock_receiver(tx.connection, after.key)
        if after.is_paused:
            await pause_deliveries(tx.connection, after.key, now=now)
            await rest_receiver(tx.connection, after.key)
            return
        await resume_deliveries(tx.connection, after.key, now=now)
        await note_failures(tx.connection, after.key, 0)
        await wake_receivers(tx.connection, {after.key: now})
        tx.after_commit(self._on_resumed)
