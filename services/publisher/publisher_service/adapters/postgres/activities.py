"""Activities: the log of what accounts did, and how much of a day's caps it has used."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import Action, action_of
from publisher_service.adapters.postgres.keys import Key
from publisher_service.domain.account_schedule import LocalDay
from publisher_service.domain.activity import Activity, ActivityFilter
from publisher_service.domain.limits import cap_of
from publisher_service.domain.usage import Counted

# A count for people stops here.
MOST_WAITING = 10_000

_PAGE = """
    select id, post_job_id, run, action, outcome, create_time from activity
    where {conditions} order by create_time desc, id desc limit :limit
"""

# An action with a cap has reservations. Of any other, the log says what is out or may be out: the last word of each run
# counts. What is being sent right now stands in neither.
_COUNT = text("""
    select wanted.action, a.cap,
        case when wanted.action <> 'POST' or g.limited then (
            select count(*) from reservation r
            where r.organization_id = :organization_id and r.social_account_id = :account_id
                and r.action = wanted.action and r.reserve_time >= :day_start and r.reserve_time < :day_end
        ) else (
            select count(*) from (
                select (array_agg(l.outcome order by l.create_time desc, l.id desc))[1] as last from activity l
                where l.organization_id = :organization_id and l.social_account_id = :account_id
                    and l.action = wanted.action and l.outcome in ('SUCCESS', 'UNKNOWN', 'ABSENT')
                    and l.create_time >= :day_start and l.create_time < :day_end
                group by l.post_job_id, l.run
            ) as run where last in ('SUCCESS', 'UNKNOWN')
        ) end as used,
        o.channel, o.destination,
        (
            select count(*) from (
                select from post_job p
                where p.organization_id = :organization_id and p.social_account_id = :account_id
                    and p.parked_on = wanted.parked_on and p.parked_on <> ''
                limit :most
            ) as waiting
        ) as waiting
    from unnest(cast(:actions as text[]), cast(:parked_ons as text[])) as wanted (action, parked_on)
    left join account_gate g on g.organization_id = :organization_id and g.social_account_id = :account_id
    left join lateral (
        select cap from account_action
        where organization_id = :organization_id and social_account_id = :account_id and action = wanted.action
        limit 1
    ) as a on true
    left join lateral (
        select channel, destination from post_job
        where organization_id = :organization_id and id = g.open_job_id and state = 'SENDING' and not g.limited
        limit 1
    ) as o on true
""")


async def list_activities(
    connection: AsyncConnection, wanted: ActivityFilter, *, before: tuple[object, str] | None, limit: int
) -> list[Activity]:
    """Lists activities, newest first, behind the (create_time, id) that ended the page before."""
    conditions = ["organization_id = :organization_id", "social_account_id = :account_id"]
    names: dict[str, object] = {
        "organization_id": wanted.organization_id,
        "account_id": wanted.account_id,
        "limit": limit,
    }
    if wanted.actions:
        conditions.append("action = any(cast(:actions as text[]))")
        names["actions"] = list(wanted.actions)
    if wanted.outcomes:
        conditions.append("outcome = any(cast(:outcomes as text[]))")
        names["outcomes"] = list(wanted.outcomes)
    if wanted.start_time:
        conditions.append("create_time >= :start_time")
        names["start_time"] = wanted.start_time
    if wanted.end_time:
        conditions.append("create_time < :end_time")
        names["end_time"] = wanted.end_time
    if before:
        conditions.append("(create_time, id) < (:before_time, :before_id)")
        names |= {"before_time": before[0], "before_id": before[1]}
    rows = await connection.execute(text(_PAGE.format(conditions=" and ".join(conditions))), names)
    return [Activity(**row) for row in rows.mappings()]


async def count_use(connection: AsyncConnection, account: Key, day: LocalDay) -> dict[Action, Counted]:
    """Counts what each action of the account has used of that day."""
    actions: Sequence[Action] = list(Action)
    names = {
        "organization_id": account[0],
        "account_id": account[1],
        "actions": actions,
        "parked_ons": [cap_of(action) for action in actions],
        "day_start": day.start,
        "day_end": day.end,
        "most": MOST_WAITING,
    }
    counted: dict[Action, Counted] = {}
    for row in await connection.execute(_COUNT, names):
        action = Action(row.action)
        is_out = action is Action.POST and row.channel and action_of(row.channel, row.destination) is action
        counted[action] = Counted(cap=row.cap, used=row.used + bool(is_out), waiting=row.waiting)
    return counted
