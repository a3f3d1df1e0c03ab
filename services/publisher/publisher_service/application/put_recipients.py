"""PutRecipients: creates or replaces a list of recipients."""

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.recipient_lists import (
    insert_recipient_list,
    lock_recipient_list,
    save_recipient_list,
)
from publisher_service.application.notification_changes import NotificationChanges
from publisher_service.domain.recipients import RecipientList, put
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call

R = TypeVar("R")


class PutRecipients:
    def __init__(self, changes: NotificationChanges) -> None:
        self._changes = changes

    async def __call__(self, call: Call[RecipientList, R], wanted: RecipientList, etag: str) -> R:
        return await self._changes.once(call, lambda tx, now: self._put(tx, now, wanted, etag))

    async def _put(self, tx: Transaction, now: datetime, wanted: RecipientList, etag: str) -> RecipientList:
        known = await lock_recipient_list(tx.connection, wanted.organization_id, wanted.brand_id)
        after = replace(put(known, wanted, etag=etag), update_time=now)
        if known is None:
            # An absent row cannot be locked: of concurrent first writes one inserts, and the others wait for it.
            if await insert_recipient_list(tx.connection, after):
                return after
            known = await lock_recipient_list(tx.connection, wanted.organization_id, wanted.brand_id)
            after = replace(put(known, wanted, etag=etag), update_time=now)
        await save_recipient_list(tx.connection, after)
        return after
