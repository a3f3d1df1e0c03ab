"""The inbox records the events that a consumer has applied.

It is only a filter; applying by natural key and version is what makes a redelivery safe.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text

from servicekit.pg.database import Transaction

_ADD = text("""
    insert into inbox (consumer, event_id, receive_time)
    select :consumer, event_id, :now
    from unnest(cast(:event_ids as text[])) as event_id
    on conflict do nothing
    returning event_id
""")


class Inbox:
    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    async def add(self, tx: Transaction, event_ids: Sequence[str], *, now: datetime) -> set[str]:
        """Records the events in this transaction and returns those that were not there."""
        result = await tx.connection.execute(
            _ADD, {"consumer": self._consumer, "event_ids": sorted(set(event_ids)), "now": now}
        )
        return {event_id for (event_id,) in result}
