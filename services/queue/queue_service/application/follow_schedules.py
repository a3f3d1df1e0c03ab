"""Keeping a copy of what a queue needs of its account's schedule, as Schedule announces it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from queue_service.adapters.postgres.accounts import save_schedules
from queue_service.domain.account import AnnouncedSchedule
from servicekit.pg.database import Transaction


async def follow_schedules(tx: Transaction, announced: Sequence[AnnouncedSchedule], _now: datetime) -> None:
    """Saves the schedules. Slots computed with older time zone data than theirs are left to `CatchUp`."""
    newest: dict[tuple[str, str], AnnouncedSchedule] = {}
    for each in announced:
        key = (each.organization_id, each.social_account_id)
        newest[key] = _merged(newest[key], each) if key in newest else each
    await save_schedules(tx.connection, newest.values())


def _merged(one: AnnouncedSchedule, other: AnnouncedSchedule) -> AnnouncedSchedule:
    """Returns the newer schedule with the newer release: while Schedule is being replaced they may come apart."""
    newer = one if one.version > other.version else other
    return replace(newer, tzdata_version=max(one.tzdata_version, other.tzdata_version))
