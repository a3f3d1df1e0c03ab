"""Limits of accounts: the instants of their windows and days, and how much of their daily caps is used.

All who change a row here hold the lock of the account's gate, as the claim does. So what is counted is exact, no matter
how many processes send.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import Action, action_of
from publisher_service.adapters.postgres.account_schedules import schedules_of, set_openings
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.account_schedule import LocalDay, day_of, opening
from publisher_service.domain.claim import Command, Judged, send_time
from publisher_service.domain.limits import action_of_job

# The reservations are the truth: what is used is counted again for each day, and for the day of another zone.
_BEGIN_DAYS = text("""
    insert into account_action as a (organization_id, social_account_id, action, used, local_date, day_start, day_end)
    select day.organization_id, day.account_id, day.action, (
            select count(*) from reservation r
            where r.organization_id = day.organization_id and r.social_account_id = day.account_id
                and r.action = day.action and r.reserve_time >= day.day_start and r.reserve_time < day.day_end
        ), day.local_date, day.day_start, day.day_end
    from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:actions as text[]),
        cast(:dates as date[]), cast(:starts as timestamptz[]), cast(:ends as timestamptz[])
    ) as day (organization_id, account_id, action, local_date, day_start, day_end)
    -- Posts have no cap, unless the account has one for them.
    where day.action <> 'POST' or exists (
        select from account_gate g
        where g.organization_id = day.organization_id and g.social_account_id = day.account_id and g.limited
    )
    on conflict (organization_id, social_account_id, action) do update set
        used = excluded.used, local_date = excluded.local_date, day_start = excluded.day_start,
        day_end = excluded.day_end
""")

_RESERVE = text("""
    insert into reservation (organization_id, post_job_id, fence, run, social_account_id, action, reserve_time)
    select organization_id, id, fence, run, account_id, action, reserve_time
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]), cast(:runs as integer[]),
        cast(:account_ids as text[]), cast(:actions as text[]), cast(:times as timestamptz[])
    ) as new (organization_id, id, fence, run, account_id, action, reserve_time)
    on conflict do nothing
    returning organization_id, social_account_id, action, reserve_time
""")

_GIVE_BACK = text("""
    delete from reservation r
    using unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]))
        as done (organization_id, id, fence)
    where r.organization_id = done.organization_id and r.post_job_id = done.id and r.fence = done.fence
    returning r.organization_id, r.social_account_id, r.action, r.reserve_time
""")

# Only what was reserved in the day that is counted.
_COUNT = text("""
    update account_action a set used = greatest(a.used + change.used, 0)
    from (
        select n.organization_id, n.account_id, n.action, cast(sum(n.change) as integer) as used
        from unnest(
            cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:actions as text[]),
            cast(:times as timestamptz[]), cast(:changes as integer[])
        ) as n (organization_id, account_id, action, reserve_time, change)
        join account_action d on d.organization_id = n.organization_id and d.social_account_id = n.account_id
            and d.action = n.action and n.reserve_time >= d.day_start and n.reserve_time < d.day_end
        group by 1, 2, 3
    ) as change
    where a.organization_id = change.organization_id and a.social_account_id = change.account_id
        and a.action = change.action
""")

# There is room again: what is parked on the cap is looked at.
_WAKE = text("""
    update parked_line p set wake_time = least(p.wake_time, :now)
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:parked_ons as text[]))
        as freed (organization_id, account_id, parked_on)
    where p.organization_id = freed.organization_id and p.social_account_id = freed.account_id
        and p.parked_on = freed.parked_on
""")

_DROP = text("""
    delete from reservation r
    using (
        select organization_id, post_job_id, fence from reservation
        where reserve_time < :before order by reserve_time limit :limit for update skip locked
    ) as old
    where r.organization_id = old.organization_id and r.post_job_id = old.post_job_id and r.fence = old.fence
""")

_LOCK_GATES = text("""
    select from account_gate g
    join unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
        on g.organization_id = a.organization_id and g.social_account_id = a.account_id
    order by g.organization_id, g.social_account_id
    for no key update of g
""")

_NOTE_SENDS = text("""
    update account_gate g set
        last_post_time = greatest(g.last_post_time, sent.post_time),
        last_outreach_time = greatest(g.last_outreach_time, sent.outreach_time)
    from (
        select organization_id, account_id, max(end_time) filter (where is_post) as post_time,
            max(end_time) filter (where not is_post) as outreach_time
        from unnest(
            cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:are_posts as boolean[]),
            cast(:times as timestamptz[])
        ) as one (organization_id, account_id, is_post, end_time)
        group by 1, 2
    ) as sent
    where g.organization_id = sent.organization_id and g.social_account_id = sent.account_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """An attempt whose outcome counts for the limits of its account."""

    organization_id: str
    post_job_id: str
    fence: int
    run: int
    account_id: str
    action: Action
    time: datetime

    @property
    def account(self) -> Key:
        return self.organization_id, self.account_id


async def refresh_limits(connection: AsyncConnection, commands: Sequence[Command], *, now: datetime) -> None:
    """Computes windows and days of the accounts of these commands, whose gates this transaction has locked."""
    if not commands:
        return
    times: dict[Key, datetime] = {}
    actions: defaultdict[Key, set[Action]] = defaultdict(set)
    for command in commands:
        key = (command.organization_id, command.target.social_account_id)
        times[key] = min(send_time(command, now), times.get(key, send_time(command, now)))
        actions[key].add(action_of(command.target.channel, command.target.destination))
    await begin_days(connection, times, actions)


async def begin_days(
    connection: AsyncConnection, times: Mapping[Key, datetime], actions: Mapping[Key, set[Action]]
) -> None:
    """Computes the windows of accounts, and the days of some of their actions, that include these instants."""
    schedules = await schedules_of(connection, times)
    openings = {key: opening(schedules[key], at) for key, at in times.items() if key in schedules}
    await set_openings(connection, {key: found for key, found in openings.items() if found})
    days = {key: day_of(schedules[key].time_zone if key in schedules else "", at) for key, at in times.items()}
    await _begin(connection, [(key, action, days[key]) for key in sorted(times) for action in sorted(actions[key])])


async def reserve(connection: AsyncConnection, claimed: Sequence[Judged], *, now: datetime) -> None:
    """Takes one of the daily cap for each of these claims, of which each account has one."""
    sends = []
    for each in claimed:
        assert each.claimed is not None
        job = each.claimed.job
        assert job.schedule_time is not None
        time = max(now, job.schedule_time)
        sends.append(
            Send(
                organization_id=job.organization_id,
                post_job_id=job.id,
                fence=job.fence,
                run=job.run,
                account_id=job.target.social_account_id,
                action=action_of_job(job),
                time=time,
            )
        )
    await reserve_sends(connection, sends)


async def reserve_sends(connection: AsyncConnection, sends: Sequence[Send]) -> None:
    """Takes one of the daily cap of the day of each attempt. The gates of the accounts are locked."""
    if sends:
        names = _keys(sends) | {
            "runs": [each.run for each in sends],
            "account_ids": [each.account_id for each in sends],
            "actions": [each.action for each in sends],
            "times": [each.time for each in sends],
        }
        rows = (await connection.execute(_RESERVE, names)).all()
        await _count(connection, [tuple(row) for row in rows], 1)


async def give_back(connection: AsyncConnection, sends: Sequence[Send], *, now: datetime) -> None:
    """Gives back what these attempts have taken of daily caps: it is proven that they had no effect."""
    if sends:
        await lock_gates_of(connection, sends)
        rows = [tuple(row) for row in (await connection.execute(_GIVE_BACK, _keys(sends))).all()]
        await _count(connection, rows, -1)
        freed = {
            "organization_ids": [row[0] for row in rows],
            "account_ids": [row[1] for row in rows],
            "parked_ons": [f"action:{row[2]}" for row in rows],
        }
        await connection.execute(_WAKE, freed | {"now": now})


async def lock_gates_of(connection: AsyncConnection, sends: Sequence[Send]) -> None:
    await connection.execute(_LOCK_GATES, key_arrays([each.account for each in sends], "account_ids"))


async def note_sends(connection: AsyncConnection, sends: Sequence[Send]) -> None:
    """Notes when attempts ended that have or may have had effect: spacing counts from there."""
    if sends:
        names = {
            "organization_ids": [each.organization_id for each in sends],
            "account_ids": [each.account_id for each in sends],
            "are_posts": [each.action is Action.POST for each in sends],
            "times": [each.time for each in sends],
        }
        await connection.execute(_NOTE_SENDS, names)


async def drop_reservations(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Deletes the oldest reservations. Returns their number."""
    return (await connection.execute(_DROP, {"before": before, "limit": limit})).rowcount


async def _begin(connection: AsyncConnection, days: Sequence[tuple[Key, Action, LocalDay]]) -> None:
    if days:
        names = {
            "organization_ids": [key[0] for key, _, _ in days],
            "account_ids": [key[1] for key, _, _ in days],
            "actions": [action for _, action, _ in days],
            "dates": [day.date for _, _, day in days],
            "starts": [day.start for _, _, day in days],
            "ends": [day.end for _, _, day in days],
        }
        await connection.execute(_BEGIN_DAYS, names)


async def _count(connection: AsyncConnection, rows: Sequence[tuple[str, str, str, datetime]], change: int) -> None:
    if rows:
        names = {
            "organization_ids": [row[0] for row in rows],
            "account_ids": [row[1] for row in rows],
            "actions": [row[2] for row in rows],
            "times": [row[3] for row in rows],
            "changes": [change] * len(rows),
        }
        await connection.execute(_COUNT, names)


def _keys(sends: Sequence[Send]) -> dict[str, list[object]]:
    return {
        "organization_ids": [each.organization_id for each in sends],
        "ids": [each.post_job_id for each in sends],
        "fences": [each.fence for each in sends],
    }
