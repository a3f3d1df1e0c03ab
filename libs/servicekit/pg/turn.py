"""A turn: work on the outbox that one process does for all, until it gives the turn back or dies."""

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
    """Saves work and guards nothing: a process that stands still for longer than its turn may do what another did."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._mine = {"name": name, "holder": secrets.token_hex(8)}
        self._taken = False

    async def take(self) -> bool:
        """Takes the turn, or prolongs it; False while another process has it."""
        async with self._database.statement() as connection:
            taken = await connection.execute(_TAKE, self._mine | {"length": _LENGTH})
        self._taken = taken.rowcount > 0
        return self._taken

    async def give_back(self) -> None:
        if self._taken:
            async with self._database.statement() as connection:
                await connection.execute(_GIVE_BACK, self._mine)
        self._taken = False
