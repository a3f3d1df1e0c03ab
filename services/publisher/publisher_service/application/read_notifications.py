"""Reads recipients, webhooks and deliveries."""

from collections.abc import Sequence
from datetime import datetime

from publisher_service.adapters.postgres.deliveries import list_deliveries
from publisher_service.adapters.postgres.recipient_lists import get_recipient_list, list_recipient_lists
from publisher_service.adapters.postgres.subscriptions import get_subscription, list_subscriptions
from publisher_service.domain.delivery import Delivery, DeliveryFilter
from publisher_service.domain.recipients import RecipientList
from publisher_service.domain.subscription import Subscription, require_subscription
from servicekit.faults import NotFound
from servicekit.pg.database import Database


class ReadNotifications:
    def __init__(self, database: Database, *, is_mail_on: bool) -> None:
        self._database = database
        self._is_mail_on = is_mail_on

    async def recipients(self, organization_id: str, brand_id: str) -> RecipientList:
        async with self._database.read() as connection:
            found = await get_recipient_list(connection, organization_id, brand_id)
        if found is None:
            raise NotFound("RECIPIENTS_NOT_FOUND", "there is no such list", metadata={"brand_id": brand_id})
        return found

    async def recipient_lists(self, organization_id: str, *, after: str | None, limit: int) -> list[RecipientList]:
        async with self._database.read() as connection:
            return await list_recipient_lists(connection, organization_id, after=after, limit=limit)

    async def subscription(self, organization_id: str, subscription_id: str) -> Subscription:
        async with self._database.read() as connection:
            found = await get_subscription(connection, organization_id, subscription_id)
        return require_subscription(found, subscription_id)

    async def subscriptions(self, organization_id: str, *, after: str, limit: int) -> list[Subscription]:
        async with self._database.read() as connection:
            return await list_subscriptions(connection, organization_id, after=after, limit=limit)

    async def deliveries(
        self, wanted: DeliveryFilter, *, before: tuple[datetime, str] | None, limit: int
    ) -> Sequence[tuple[Delivery, str]]:
        """Lists deliveries with their subjects, newest first."""
        async with self._database.read() as connection:
            return await list_deliveries(connection, wanted, is_mail_on=self._is_mail_on, before=before, limit=limit)
