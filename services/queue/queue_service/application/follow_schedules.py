"""Keeping what a queue must know of its account's schedule, as Schedule announces it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from queue_service.adapters.postgres import account_store
from queue_service.domain.account import ToldSchedule
from servicekit.pg.database import Transaction


async def follow_schedules(tx: Transaction, told: Sequence[ToldSchedule], _now: datetime) -> None:
    """Slots that follow an older law than it does are left to `CatchUp`."""
    newest: dict[tuple[str, str], ToldSchedule] = {}
    for each in told:
        key = (each.organization_id, each.social_account_id)
        newest[key] = _merged(newest[key], each) if key in newest else each
    await account_store.save_schedules(tx.connection, newest.values())


def _merged(one: ToldSchedule, other: ToldSchedule) -> ToldSchedule:
    """The newer of the two. While Schedule is being replaced it may follow an older law than the other."""
    newer = one if one.version > other.version else other
    return replace(newer, tzdata_version=max(one.tzdata_version, other.tzdata_version))
