"""Everything in the database that is checked after a step, read together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text

from tests.usecase.publisher_service.machine.processes import Process

Rows = Sequence[Row[Any]]

_STATEMENTS = {
    "jobs": text("select * from post_job"),
    "disconnected": text("select id from social_account where state <> 'CONNECTED'"),
    "contents": text("select draft_id, version from content"),
    "stuck": text("""
        select g.* from account_gate g join post_job j on j.id = g.open_job_id where j.state <> 'SENDING'
    """),
    "reserved": text("select social_account_id, post_job_id, run, reserve_time from reservation"),
    "miscounted": text("""
        select a.social_account_id, a.used, n.reserved from account_action a
        cross join lateral (
            select count(*) as reserved from reservation r
            where r.social_account_id = a.social_account_id and r.action = a.action
                and r.reserve_time >= a.day_start and r.reserve_time < a.day_end
        ) n
        where a.used <> n.reserved and a.day_start is not null
    """),
    # Places of caps that are taken for what is proven to have had no effect.
    "wasted": text("""
        select r.social_account_id, r.post_job_id, r.run, a.state from reservation r
        join attempt a using (organization_id, post_job_id, fence)
        where a.state not in ('SENDING', 'UNKNOWN', 'ACCEPTED')
    """),
    # Runs of posts that have or may have had effect, and have taken no place.
    "uncounted": text("""
        select j.social_account_id, a.post_job_id, a.run, a.state, a.start_time from attempt a
        join post_job j on j.id = a.post_job_id
        where a.state in ('SENDING', 'UNKNOWN', 'ACCEPTED') and j.part = 0 and not exists (
            select from reservation r where r.post_job_id = a.post_job_id and r.run = a.run
        )
    """),
    "parked": text("""
        select j.social_account_id, j.parked_on, min(p.wake_time) as wake_time, count(*) as posts from post_job j
        left join parked_line p using (organization_id, social_account_id, parked_on)
        where j.parked_on <> '' group by 1, 2
    """),
    "destinations": text("select * from destination"),
    # Posts to destinations that the provider has accepted or refused.
    "answers": text("""
        select a.post_job_id, a.fence, a.state, a.error_reason, j.social_account_id, j.channel, j.destination
        from attempt a join post_job j on j.id = a.post_job_id
        where j.destination <> '' and (a.state = 'ACCEPTED' or (a.state = 'REJECTED' and a.error_reason <> 'AUTH'))
    """),
}
_ANNOUNCED = text("select position, payload from outbox where position > :after order by position")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    jobs: Rows
    disconnected: Rows
    contents: Rows
    # Gates that are closed by a post that is not out.
    stuck: Rows
    reserved: Rows
    # Caps of which something else is counted than what is reserved.
    miscounted: Rows
    wasted: Rows
    uncounted: Rows
    parked: Rows
    destinations: Rows
    answers: Rows
    announced: Rows


async def look_at(process: Process, *, after: int) -> Snapshot:
    """Reads it; of what was announced, what lies behind the position `after`."""
    async with process.database.read() as connection:
        found = {name: (await connection.execute(statement)).all() for name, statement in _STATEMENTS.items()}
        announced = (await connection.execute(_ANNOUNCED, {"after": after})).all()
    return Snapshot(**found, announced=announced)
