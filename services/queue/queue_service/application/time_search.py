"""Looking at the slot times of several accounts together, window by window, for free ones."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import count, repeat

from queue_service.adapters.postgres.slots import Day, count_slots, find_near
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.allocation import Occupancy, days_of
from queue_service.domain.openings import Lack, Opening, Openings
from servicekit.pg.session import Session

# Almost always one of the first times is free. If not, the windows grow, so that a long search takes few statements.
_FIRST_WINDOW, _LARGEST_WINDOW = 8, 512


class TimeSearch:
    """One search under the locks of the accounts, or on a snapshot of them."""

    def __init__(
        self, session: Session, queues: Mapping[AccountKey, AccountQueue], openings: Mapping[AccountKey, Openings]
    ) -> None:
        self._session = session
        self._queues = queues
        self._openings = openings
        self._sizes = (min(_FIRST_WINDOW * 4**step, _LARGEST_WINDOW) for step in count())

    async def look(self) -> None:
        """Looks at the next times of each account that needs some."""
        size = next(self._sizes)
        windows = {account: openings.window(size) for account, openings in self._openings.items()}
        occupancy = await self._occupancy(windows)
        for account, openings in self._openings.items():
            openings.learn(occupancy[account])

    async def find(self, account: AccountKey, number: int, category: str = "") -> list[Opening] | Lack:
        """Takes free times of one account, for drafts of one category that are not added to the end."""
        openings = self._openings[account]
        openings.expect(repeat(category, number))
        found: list[Opening] = []
        while len(found) < number:
            opening = openings.find(category, at_end=False)
            if opening is Lack.LOOK:
                await self.look()
            elif isinstance(opening, Lack):
                return opening
            else:
                openings.take(opening)
                found.append(opening)
        return found

    async def _occupancy(self, windows: Mapping[AccountKey, Sequence[datetime]]) -> Mapping[AccountKey, Occupancy]:
        wanted = [(account, time) for account, window in windows.items() for time in window]
        near = await find_near(self._session, wanted)
        filled = {account: {time for time in window if (account, time) in near} for account, window in windows.items()}
        capped = [account for account in windows if self._queues[account].max_posts_per_day]
        days = [
            Day(account=account, local_date=day, start=start, end=end)
            for account in capped
            for day, (start, end) in days_of(
                set(windows[account]) - filled[account], self._queues[account].time_zone
            ).items()
        ]
        counted: dict[AccountKey, dict[date, int]] = {account: {} for account in windows}
        for (owner, day), slots in (await count_slots(self._session, days)).items():
            counted[owner][day] = slots
        return {account: Occupancy(filled=filled[account], counted=counted[account]) for account in windows}
