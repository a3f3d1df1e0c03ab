"""Searching slot times of several accounts for free ones, window by window, under the accounts' locks."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from queue_service.adapters.postgres.slots import Day, count_slots, find_near
from queue_service.domain.account import AccountKey
from queue_service.domain.allocation import Occupancy, days_of
from queue_service.domain.search import Search
from servicekit.pg.database import Transaction

# Almost always one of the first times is free. If not, the windows grow, so that a long search takes few statements.
_FIRST_WINDOW, _LARGEST_WINDOW = 8, 512


async def search_times(tx: Transaction, searches: Mapping[AccountKey, Search]) -> Mapping[AccountKey, Search]:
    """Advances each account's search until it has found a time or has no more slot times to look at."""
    size = _FIRST_WINDOW
    while windows := {account: search.window(size) for account, search in searches.items() if search.can_continue}:
        occupancy = await _occupancy(tx, searches, windows)
        searches = {
            account: search.looked(windows[account], occupancy[account]) if account in windows else search
            for account, search in searches.items()
        }
        size = min(size * 4, _LARGEST_WINDOW)
    return searches


async def _occupancy(
    tx: Transaction,
    searches: Mapping[AccountKey, Search],
    windows: Mapping[AccountKey, Sequence[datetime]],
) -> Mapping[AccountKey, Occupancy]:
    wanted = [(account, time) for account, window in windows.items() for time in window]
    near = await find_near(tx, wanted)
    filled = {account: {time for time in window if (account, time) in near} for account, window in windows.items()}
    capped = {account for account in windows if searches[account].queue.max_posts_per_day}
    days = [
        Day(account=account, local_date=day, start=start, end=end)
        for account in capped
        for day, (start, end) in days_of(
            set(windows[account]) - filled[account], searches[account].queue.time_zone
        ).items()
    ]
    counted = await count_slots(tx, days)
    return {
        account: Occupancy(
            filled=filled[account],
            counted={day: slots for (owner, day), slots in counted.items() if owner == account},
        )
        for account in windows
    }
