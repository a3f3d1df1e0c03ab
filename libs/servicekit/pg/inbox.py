"""The inbox records the events that a consumer has applied.

It is only a filter; applying by natural key and version is what makes a redelivery safe.
"""

from collections.abc import Sequence
from datetime import datetime

from servicekit.pg.database import Transaction
from servicekit.pg.session import Statement

_ADD = Statement("""
    with added as (
        insert into inbox (consumer, event_id, receive_time)
        select :consumer, event_id, :now
        from unnest(cast(:event_ids as text[])) as event_id
        on conflict do nothing
        returning event_id
    )
    -- All of them, as a rule: then they are not sent back.
    select case when count(*) < cardinality(cast(:event_ids as text[])) then coalesce(array_agg(event_id), '{}') end
    from added
""")


class Inbox:
    def __init__(self, consumer: str) -> None:
        self._consumer = consumer

    async def add(self, tx: Transaction, event_ids: Sequence[str], *, now: datetime) -> set[str]:
        """Records the events in this transaction and returns those that were not there."""
        unique = set(event_ids)
        arrived = {"consumer": self._consumer, "event_ids": sorted(unique), "now": now}
        added: list[str] | None = await tx.fetch_value(_ADD, arrived)
        return unique if added is None else set(added)
