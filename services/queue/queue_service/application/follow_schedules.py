"""Keeping what a queue must know of its account's schedule, as Schedule announces it."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres import store
from queue_service.domain.account import ChangedSchedule
from servicekit.pg.database import Transaction


async def follow_schedules(tx: Transaction, changed: Sequence[ChangedSchedule], _now: datetime) -> None:
    newest: dict[tuple[str, str], ChangedSchedule] = {}
    for each in changed:
        key = (each.organization_id, each.social_account_id)
        if key not in newest or newest[key].version < each.version:
            newest[key] = each
    await store.save_schedules(tx.connection, newest.values())
