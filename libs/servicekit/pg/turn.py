"""A turn lets one process work on the outbox for all replicas, until it gives the turn back or dies."""

import secrets
from datetime import timedelta

from sqlalchemy import text

from servicekit.pg.database import Database

_LENGTH = timedelta(seconds=10)

_TAKE = text("""
    insert into outbox_turn as turn (name, holder, end_time)
    values (:name, :holder, clock_timestamp() + cast(:length as interval))
    on conflict (name) do update set holder = excluded.holder, end_time = excluded.end_time
    where turn.holder = excluded.holder or turn.end_time < clock_timestamp()
""")
_GIVE_BACK = text("delete from outbox_turn where name = :name and holder = :holder")


class Turn:
    """Saves duplicate work, but guards nothing: a process that pauses longer than its turn may repeat work."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._mine = {"name": name, "holder": secrets.token_hex(8)}
        self._taken = False

    async def take(self) -> bool:
        """Takes or prolongs the turn. Returns False while another process has it."""
        async with self._database.statement() as connection:
            taken = await connection.execute(_TAKE, self._mine | {"length": _LENGTH})
        self._taken = taken.rowcount > 0
        return self._taken

    async def give_back(self) -> None:
        if self._taken:
            async with self._database.statement() as connection:
                await connection.execute(_GIVE_BACK, self._mine)
        self._taken = False
