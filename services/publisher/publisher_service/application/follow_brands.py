"""Follows Drafts: keeps the recipients of each brand as they were announced last."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from publisher_service.adapters.postgres.recipient_lists import (
    insert_recipient_list,
    lock_recipient_list,
    save_recipient_list,
)
from publisher_service.domain.recipients import RecipientList, announced
from servicekit.pg.database import Transaction
from servicekit.versions import newest

_KEY = attrgetter("key")
_VERSION = attrgetter("announced_version")


class FollowBrands:
    async def __call__(self, tx: Transaction, brands: Sequence[RecipientList], now: datetime) -> None:
        """Applies the newest announcement of each brand; the highest version wins, and preferences stay."""
        for brand in sorted(newest(brands, key=_KEY, version=_VERSION), key=_KEY):
            wanted = replace(brand, update_time=now)
            # An absent row cannot be locked: of concurrent first writes one inserts, and the others wait for it.
            if await insert_recipient_list(tx.connection, wanted):
                continue
            known = await lock_recipient_list(tx.connection, brand.organization_id, brand.brand_id)
            if (after := announced(known, wanted)) is not None:
                await save_recipient_list(tx.connection, after)
