"""Follows Schedule: keeps a copy of each account's schedule, and its present instants on the account's gate."""

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter

from publisher_service.adapters.postgres.account_schedules import lock_gates, save_schedule
from publisher_service.domain.account_schedule import AccountSchedule, opening
from servicekit.pg.database import Transaction
from servicekit.versions import newest

_KEY = attrgetter("key")
_VERSION = attrgetter("version")


class FollowSchedules:
    def __init__(self, on_changed: Callable[[], None]) -> None:
        """`on_changed` is called when a line may have its turn, or has to show another reason."""
        self._on_changed = on_changed

    async def __call__(self, tx: Transaction, announced: Sequence[AccountSchedule], now: datetime) -> None:
        """Applies each account's newest schedule; one that is announced again is computed with today's zone data."""
        schedules = sorted(newest(announced, key=_KEY, version=_VERSION), key=_KEY)
        await lock_gates(tx.connection, [schedule.key for schedule in schedules])
        for schedule in schedules:
            await save_schedule(tx.connection, schedule, opening(schedule, now), now=now)
        tx.after_commit(self._on_changed)
