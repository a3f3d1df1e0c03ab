"""RetryDelivery: sends a delivery again at once, under its id."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.deliveries import get_delivery, lock_delivery, save_delivery
from publisher_service.adapters.postgres.notification_lines import wake_receivers
from publisher_service.adapters.postgres.subscriptions import lock_subscription
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.delivery import MAIL, Delivery, tried_again
from servicekit.faults import NotFound
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call

R = TypeVar("R")


class RetryDelivery:
    def __init__(self, *, changes: NotificationChanges, on_due: Callable[[], None]) -> None:
        """`on_due` is called when something may be due."""
        self._changes = changes
        self._on_due = on_due

    async def __call__(self, call: Call[Delivery, R], delivery_id: str) -> R:
        return await self._changes.once(call, partial(self._retry, (call.organization_id, delivery_id)))

    async def _retry(self, key: tuple[str, str], tx: Transaction, now: datetime) -> Delivery:
        seen = await get_delivery(tx.connection, *key)
        is_deleted = is_paused = False
        if seen is not None and seen.receiver != MAIL:
            # Before the delivery, as everywhere. Which receiver it has never changes.
            subscription = await lock_subscription(tx.connection, seen.organization_id, seen.receiver)
            is_deleted, is_paused = subscription is None, subscription is not None and subscription.is_paused
        if seen is not None:
            await wake_receivers(tx.connection, {(seen.organization_id, seen.receiver): now})
        known = await lock_delivery(tx.connection, *key)
        if known is None:
            raise NotFound("DELIVERY_NOT_FOUND", "there is no such delivery", metadata={"delivery_id": key[1]})
        after = tried_again(known, is_deleted=is_deleted, is_paused=is_paused, now=now)
        await save_delivery(tx.connection, after)
        tx.after_commit(self._on_due)
        return after
