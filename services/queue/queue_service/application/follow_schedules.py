"""Keeping a copy of what a queue needs of its account's schedule, as Schedule announces it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from queue_service.adapters.postgres.accounts import save_schedules
from queue_service.domain.account import AnnouncedSchedule
from servicekit.pg.database import Transaction
from servicekit.versions import newest


async def follow_schedules(tx: Transaction, announced: Sequence[AnnouncedSchedule], _now: datetime) -> None:
    """Saves each account's newest schedule (of two with one version, the later), and the newest tzdata release.

    The two may come from different events: during a rollout of Schedule, a process with an older tzdata release may
    announce the newest schedule. `CatchUp` moves slots that were computed with an older release.
    """
    releases = defaultdict[tuple[str, str], str](str)
    for each in announced:
        releases[_account(each)] = max(releases[_account(each)], each.tzdata_version)
    schedules = newest(reversed(announced), key=_account, version=lambda each: each.version)
    await save_schedules(tx.connection, [replace(each, tzdata_version=releases[_account(each)]) for each in schedules])


def _account(schedule: AnnouncedSchedule) -> tuple[str, str]:
    return schedule.organization_id, schedule.social_account_id
