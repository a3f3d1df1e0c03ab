"""The frontier of a queue: where the search for a free slot time begins, and what it skips.

A queue is filled from the front, so almost always all slot times before some instant are taken. When one of them
becomes free again, the times after it are still known to be taken: that is the second stretch. So a search never walks
over filled slots, neither in a long queue nor after a cancellation in its middle.
"""

from datetime import UTC, datetime

from servicekit.record import record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Stretch = tuple[datetime, datetime]


@record(frozen=True, slots=True, kw_only=True)
class Frontier:
    """No slot time before `search_from` is free, and none from `full_from` until `full_until`.

    Taking a time leaves this true. All code that frees a time must call `reopened`; a changed schedule starts from
    `NOTHING_KNOWN`.
    """

    search_from: datetime = EPOCH
    full_from: datetime = EPOCH
    full_until: datetime = EPOCH

    def next_open(self, instant: datetime) -> datetime:
        """Returns the first instant from the given one on that may be free."""
        start = max(instant, self.search_from)
        return max(start, self.full_until) if start >= self.full_from else start

    def passed(self, until: datetime) -> "Frontier":
        """Records that no slot time before `until` is free."""
        search_from = max(self.search_from, until)
        if search_from < self.full_from:
            return Frontier(search_from=search_from, full_from=self.full_from, full_until=self.full_until)
        return _only(max(search_from, self.full_until))

    def reopened(self, start: datetime, end: datetime) -> "Frontier":
        """Records that slot times from `start` until `end` may be free again."""
        search_from = min(self.search_from, start)
        still_full = [
            *_without((search_from, self.search_from), start, end),
            *_without((self.full_from, self.full_until), start, end),
        ]
        full_from, full_until = max(still_full, key=_length, default=(search_from, search_from))
        return Frontier(search_from=search_from, full_from=full_from, full_until=full_until)


NOTHING_KNOWN = Frontier()


def _only(search_from: datetime) -> Frontier:
    return Frontier(search_from=search_from, full_from=search_from, full_until=search_from)


def _without(stretch: _Stretch, start: datetime, end: datetime) -> list[_Stretch]:
    """Cuts [start, end) out of a stretch."""
    left, right = (stretch[0], min(stretch[1], start)), (max(stretch[0], end), stretch[1])
    return [piece for piece in (left, right) if piece[0] < piece[1]]


def _length(stretch: _Stretch) -> float:
    return (stretch[1] - stretch[0]).total_seconds()
