"""Brings parked posts back into the lines of their accounts, as many as the limit lets go.

A limit with any number of parked posts costs one look when it is over, and as many rows as posts come back.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from channels import Action
from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.limits import begin_days
from publisher_service.adapters.postgres.parking import (
    Pace,
    ParkedLine,
    behind_cap,
    drop_parked_line,
    due_parked_lines,
    first_parked,
    is_any_parked,
    is_one_parked,
    line_up_again,
    lock_parked_gate,
    use_of,
    wake_at,
)
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.limits import (
    DEFAULTS,
    SPACED_OUTREACH,
    SPACED_POSTS,
    LimitDefaults,
    Room,
    capped_action,
    closed_channel,
    is_offer,
    is_parked,
    room_of_cap,
    room_of_channel,
    room_of_spacing,
)
from publisher_service.domain.post_job import JobState, PostJob, Reason, moved
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_COMMITTED = declare("publisher.parked.committed")
# Limits of a look.
_PAGE = 50
# Posts of one limit that come back together, when it lets any number go.
_MOST = 50
# A post is locked, or its account: another look follows soon.
_BUSY = timedelta(seconds=1)


class WakeParked:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        wake_lines: Callable[[], None],
        limits: LimitDefaults = DEFAULTS,
    ) -> None:
        """`wake_lines` is called when a line has its turn."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._wake_lines = wake_lines
        self._limits = limits

    async def __call__(self) -> bool:
        """Returns whether there may be more to do."""
        async with self._database.session() as session:
            if not await is_one_parked(session, now=await self._clock.now(session)):
                return False
        return await self.look()

    async def look(self) -> bool:
        more = await self._database.run(self._page)
        await failpoint(_COMMITTED)
        return more

    async def _page(self, tx: Transaction) -> bool:
        now = await self._clock.now(tx.connection)
        lines = await due_parked_lines(tx.connection, now=now, limit=_PAGE)
        woken = [await self._wake(tx, line, now) for line in lines]
        if any(woken):
            tx.after_commit(self._wake_lines)
        # Not only after a full page: each organization gets its share of one.
        return any(woken)

    async def _wake(self, tx: Transaction, line: ParkedLine, now: datetime) -> bool:
        """Returns whether the line of the account has to be looked at."""
        pace = await lock_parked_gate(tx.connection, line)
        if pace is None:
            return False
        room = await self._room(tx, line, pace, now)
        jobs = await first_parked(tx.connection, line, limit=min(room.posts, _MOST)) if room.posts else []
        if room.posts and not jobs:
            if await is_any_parked(tx.connection, line):
                await wake_at(tx.connection, line, now + _BUSY)
            else:
                await drop_parked_line(tx.connection, line)
            return False
        after = [_released(job, now) for job in jobs]
        released = [new for old, new in zip(jobs, after, strict=True) if new.version > old.version]
        await save_jobs(tx.connection, after)
        await wake_at(tx.connection, line, room.next_look)
        await self._outbox.append(tx, [post_job_changed(job) for job in released], now=now)
        tx.after_commit(partial(write_outcomes, released))
        if jobs:
            await line_up_again(tx.connection, line, now=now)
        return bool(jobs)

    async def _room(self, tx: Transaction, line: ParkedLine, pace: Pace, now: datetime) -> Room:
        outreach = self._limits.outreach_spacing
        if line.parked_on == SPACED_OUTREACH:
            last = pace.last_outreach_time
            return room_of_spacing(last + outreach if last else None, outreach, now=now)
        if line.parked_on == SPACED_POSTS:
            return room_of_spacing(pace.posts_from, pace.post_spacing, now=now)
        if closed_channel(line.parked_on):
            return room_of_channel(pace.closed_until, now=now)
        if is_offer(line.parked_on):
            # The account offers the channel by now: only then is there anything to look at.
            return Room(posts=_MOST, next_look=now)
        action = capped_action(line.parked_on)
        if action is None:
            # Of a newer release, which knows the limit: the claim judges, and parks again.
            return Room(posts=_MOST, next_look=now + _BUSY)
        use = await use_of(tx.connection, line, action, now=now)
        if use is None or not use.is_today:
            await begin_days(tx.connection, {line.account: now}, {line.account: {action}})
            use = await use_of(tx.connection, line, action, now=now)
        cap = self._limits.caps.get(action) if use is None or use.cap is None else use.cap
        if use is None or use.day_end is None or cap is None:
            return Room(posts=_MOST, next_look=now + _BUSY)
        waiting = 0
        if use.used < cap:
            spaced_on = SPACED_POSTS if action is Action.POST else SPACED_OUTREACH
            waiting = await behind_cap(tx.connection, line, action, spacing=spaced_on, limit=_MOST)
        return room_of_cap(cap - use.used, waiting, day_end=use.day_end, again=outreach, now=now)


def _released(job: PostJob, now: datetime) -> PostJob:
    """Returns the job in the line of its account; one that a previous release has moved on stays where it is."""
    if not is_parked(job):
        return replace(job, parked_on="", expected_time=None)
    return moved(job, JobState.READY, now=now, reason=Reason.IN_LINE, until=job.not_after)
