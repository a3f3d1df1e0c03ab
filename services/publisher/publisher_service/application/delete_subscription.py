"""DeleteSubscription: deletes a webhook with its secrets, and cancels what waits for it."""

from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.deliveries import cancel_deliveries
from publisher_service.adapters.postgres.notification_lines import delete_receiver, lock_receiver
from publisher_service.adapters.postgres.subscriptions import delete_subscription, lock_subscription
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.subscription import Subscription, require_subscription
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call

R = TypeVar("R")


class DeleteSubscription:
    def __init__(self, changes: NotificationChanges) -> None:
        self._changes = changes

    async def __call__(self, call: Call[Subscription, R], subscription_id: str, etag: str) -> R:
        return await self._changes.once(call, partial(self._delete, (call.organization_id, subscription_id), etag))

    async def _delete(self, key: tuple[str, str], etag: str, tx: Transaction, now: datetime) -> Subscription:
        known = require_subscription(await lock_subscription(tx.connection, *key), key[1], etag=etag)
        await lock_receiver(tx.connection, key)
        await cancel_deliveries(tx.connection, key, now=now)
        await delete_receiver(tx.connection, key)
        await delete_subscription(tx.connection, known)
        return known
