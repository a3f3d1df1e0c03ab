"""Reading slot times for a decision that says under the account's lock from where on it needs them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from queue_service.application.slot_time_reader import FEW_TIMES, SlotTimeReader, TimesWanted
from queue_service.domain.account import AccountKey
from queue_service.domain.free_times import MoreTimes
from queue_service.domain.schedule_check import ReadAgain, ReadTimes, changing

_ATTEMPTS = 30

Outcome = TypeVar("Outcome")


class TimesOnDemand:
    def __init__(self, read_times: SlotTimeReader) -> None:
        self._read_times = read_times

    async def __call__(self, account: AccountKey, attempt: Callable[[ReadTimes | None], Awaitable[Outcome]]) -> Outcome:
        """Returns the outcome of the first attempt that needs no more slot times than have been read for it.

        The first one gets none: most rearrangements need none. An attempt that needs some must have changed nothing.
        """
        wanted: TimesWanted | None = None
        for _ in range(_ATTEMPTS):
            read = (await self._read_times({account: wanted}))[account] if wanted else None
            try:
                return await attempt(read)
            except MoreTimes as needed:
                wanted = _including(wanted, needed)
            except ReadAgain:
                continue  # the schedule has changed since
        raise changing()


def _including(wanted: TimesWanted | None, needed: MoreTimes) -> TimesWanted:
    """Returns what to read next: times from where they are needed, and more of them if that did not help."""
    if wanted is None or wanted.start is None:
        return TimesWanted(
            count=max(FEW_TIMES, needed.at_least),
            needed=max(1, needed.at_least),
            start=needed.start,
            categories=frozenset({needed.category}),
        )
    if needed.category not in wanted.categories or needed.start < wanted.start:
        categories = frozenset({*wanted.categories, needed.category})
        return replace(wanted, start=min(wanted.start, needed.start), categories=categories)
    return wanted.more(needed.at_least)
