"""SendTestNotification: sends a notification that says nothing, to see that it arrives.

A mail of it is one of those that an organization may get in an hour: else tests would be a way to fill any mailbox.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.deliveries import (
    count_waiting_tests,
    insert_deliveries,
    insert_notifications,
)
from publisher_service.adapters.postgres.notification_lines import count_mails, lock_mail_lines, wake_receivers
from publisher_service.adapters.postgres.recipient_lists import get_recipient_list
from publisher_service.adapters.postgres.subscriptions import share_subscriptions
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.delivery import MAIL, Delivery, Trial, delivery_of
from publisher_service.domain.fan_out import HOUR, hour_of
from publisher_service.domain.notification import Notification, NotificationKind
from publisher_service.domain.subscription import require_subscription
from servicekit.faults import LimitReached, NotFound, Refused
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call

R = TypeVar("R")

MOST_TESTS = 10


class SendTestNotification:
    def __init__(
        self, *, changes: NotificationChanges, ids: IdSource, mails_per_hour: int, on_due: Callable[[], None]
    ) -> None:
        """`on_due` is called when something may be due."""
        self._changes = changes
        self._ids = ids
        self._mails_per_hour = mails_per_hour
        self._on_due = on_due

    async def __call__(self, call: Call[Delivery, R], trial: Trial) -> R:
        return await self._changes.once(call, partial(self._send, call.organization_id, trial))

    async def _send(self, organization_id: str, trial: Trial, tx: Transaction, now: datetime) -> Delivery:
        notification = Notification(
            organization_id=organization_id,
            kind=NotificationKind.TEST,
            subject_id="",
            occasion=self._ids.new(),
            time=now,
        )
        delivery = await self._addressed(tx, notification, trial, now)
        if await count_waiting_tests(tx.connection, organization_id) >= MOST_TESTS:
            raise LimitReached("TEST_LIMIT_REACHED", f"{MOST_TESTS} tests of the organization wait already")
        await insert_notifications(tx.connection, [notification], now=now)
        await wake_receivers(tx.connection, await insert_deliveries(tx.connection, [delivery], {}))
        tx.after_commit(self._on_due)
        return delivery

    async def _addressed(self, tx: Transaction, notification: Notification, trial: Trial, now: datetime) -> Delivery:
        if trial.subscription_id:
            await self._require_active(tx, notification.organization_id, trial.subscription_id)
            return delivery_of(notification, receiver=trial.subscription_id, now=now)
        found = await get_recipient_list(tx.connection, notification.organization_id, trial.brand_id)
        recipients = () if found is None else found.recipients
        recipient = next((each for each in recipients if each.key == trial.email.lower()), None)
        if recipient is None:
            raise NotFound("RECIPIENT_NOT_FOUND", "the address is on no list of the brand")
        await self._count_mail(tx, notification.organization_id, now)
        return delivery_of(
            notification,
            receiver=MAIL,
            email=recipient.email,
            name=recipient.name,
            brand_id=trial.brand_id,
            now=now,
        )

    async def _count_mail(self, tx: Transaction, organization_id: str, now: datetime) -> None:
        hour_time, mails = (await lock_mail_lines(tx.connection, [organization_id]))[organization_id]
        # The next hour may have begun while this call waited for the lock.
        hour = max(hour_of(now), hour_time or hour_of(now))
        used = mails if hour_time == hour else 0
        if used >= self._mails_per_hour:
            raise LimitReached(
                "TEST_LIMIT_REACHED",
                f"the organization has had its {self._mails_per_hour} mails of this hour",
                retry_after=hour + HOUR - now,
            )
        await count_mails(tx.connection, {organization_id: used + 1}, hour=hour)

    async def _require_active(self, tx: Transaction, organization_id: str, subscription_id: str) -> None:
        """Keeps the webhook from being paused or deleted until the delivery is stored."""
        shared = (await share_subscriptions(tx.connection, [organization_id])).get(organization_id, [])
        found = next((each for each in shared if each.id == subscription_id), None)
        if require_subscription(found, subscription_id).is_paused:
            raise Refused(
                "SUBSCRIPTION_PAUSED",
                "the webhook is paused: resume it first",
                metadata={"subscription_id": subscription_id},
            )
