"""Drops working rows that nothing needs any more.

Those are reservations of days that are over, preparations of ended posts, media out of use, entries of the journal of
refreshes, visits to providers that have ended, and old notifications.
"""

from datetime import timedelta

from publisher_service.adapters.postgres.connect_sessions import drop_sessions
from publisher_service.adapters.postgres.credentials import drop_refreshes
from publisher_service.adapters.postgres.deliveries import drop_deliveries, drop_notifications
from publisher_service.adapters.postgres.limits import drop_reservations
from publisher_service.adapters.postgres.media import drop_media
from publisher_service.adapters.postgres.preparations import drop_preparations
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_COMMITTED = declare("publisher.drop_old_rows.committed")
# A local day is 26 hours long at most, and no later than 14 hours behind another one. The rest is for people to read.
_RESERVATIONS_KEPT = timedelta(days=4)
# After the last instant at which it could be published. For people to read, too.
_PREPARATIONS_KEPT = timedelta(days=1)
# Who asks for older facts has the file fetched again.
_MEDIA_KEPT = timedelta(days=7)
# The journal of refreshes is for people, too. A generation that needs it is refreshed within hours.
_REFRESHES_KEPT = timedelta(days=90)
# Behind their end, so that a call that comes late hears that it does.
_SESSIONS_KEPT = timedelta(hours=1)
# As long as the stream keeps events: what it announces again is known, or too old.
_NOTIFICATIONS_KEPT = timedelta(days=30)
_MOST = 1000


class DropOldRows:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Returns whether there may be more."""
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            reservations = await drop_reservations(tx.connection, before=now - _RESERVATIONS_KEPT, limit=_MOST)
            refreshes = await drop_refreshes(tx.connection, before=now - _REFRESHES_KEPT, limit=_MOST)
            sessions = await drop_sessions(tx.connection, before=now - _SESSIONS_KEPT, limit=_MOST)
            preparations = await drop_preparations(tx.connection, before=now - _PREPARATIONS_KEPT, limit=_MOST)
            media = await drop_media(tx.connection, before=now - _MEDIA_KEPT, limit=_MOST)
            before = now - _NOTIFICATIONS_KEPT
            deliveries = await drop_deliveries(tx.connection, before=before, limit=_MOST)
            notifications = await drop_notifications(tx.connection, before=before, limit=_MOST)
        dropped = (reservations, refreshes, sessions, preparations, media, deliveries, notifications)
        if any(dropped):
            await failpoint(_COMMITTED)
        return _MOST in dropped
