"""What time it is, as far as anything due is concerned: the clock of the service's own database, read once per batch."""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_NOW = text("select clock_timestamp()")


class DatabaseClock:
    async def now(self, connection: AsyncConnection) -> datetime:
        moment = (await connection.execute(_NOW)).scalar_one()
        assert isinstance(moment, datetime)
        return moment
