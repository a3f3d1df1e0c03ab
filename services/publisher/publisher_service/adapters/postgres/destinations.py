"""Destinations: their health, which settlements keep, and how they are found, locked and written.

A transaction that locks a destination beside a job or a gate locks the destination last.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, job_from
from publisher_service.domain.destination import (
    MOST_FAILURES,
    Destination,
    DestinationFilter,
    DestinationState,
    Sign,
)
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.domain.settlement import Settlement
from servicekit.pg.session import Session, Statement

_KEY = "organization_id, social_account_id, channel, destination"
_MUTABLE = (
    "state",
    "state_reason",
    "failures",
    "error_message",
    "last_success_time",
    "last_failure_time",
    "deactivate_time",
    "version",
)
_COLUMNS = f"{_KEY}, {', '.join(_MUTABLE)}"

DEACTIVATED: Final = "array[organization_id, social_account_id, channel, state_reason]"
"""The fields of a `Deactivation` in a row that `record_signs` returns."""

# Of the row as it is, and of the signs that are new.
_FAILURES = "case when excluded.last_success_time is null then d.failures else 0 end + excluded.failures"
_DIES = f"d.state = 'ACTIVE' and (excluded.state_reason = 'BLOCKED_BY_PEER' or {_FAILURES} >= :most_failures)"


def record_signs(signs: str) -> str:
    """Returns a statement that counts the signs of a relation.

    Its rows have the key, `sign`, `end_time` and `error_message`, and a null `sign` if they say nothing. Signs of one
    destination count in the order of their times: a success forgets the failures before it.
    """
    return f"""
        insert into destination as d ({_COLUMNS})
        select {_KEY}, case when r.reason = '' then 'ACTIVE' else 'INACTIVE' end, r.reason, new.failures,
            coalesce(new.error_message, ''), new.last_success, new.last_failure,
            case when r.reason <> '' then cast(:now as timestamptz) end, 1
        from (
            select {_KEY}, max(last_success) as last_success,
                max(end_time) filter (where is_failure) as last_failure,
                count(*) filter (where is_failure and is_last) as failures,
                bool_or(sign = 'PEER_BLOCK' and is_last) as is_blocked,
                (array_agg(error_message order by end_time desc) filter (where is_failure))[1] as error_message
            from (
                select {_KEY}, sign, end_time, error_message, s.last_success, sign <> 'SUCCESS' as is_failure,
                    end_time > coalesce(s.last_success, '-infinity') as is_last
                from (
                    select {_KEY}, sign, end_time, error_message,
                        max(end_time) filter (where sign = 'SUCCESS') over (partition by {_KEY}) as last_success
                    from {signs} where sign is not null
                ) as s
            ) as each_sign
            group by {_KEY}
        ) as new
        cross join lateral (
            select case
                when is_blocked then 'BLOCKED_BY_PEER' when failures >= :most_failures then 'FAILURES' else ''
            end
        ) as r (reason)
        order by {_KEY}
        on conflict ({_KEY}) do update set
            state = case when {_DIES} then 'INACTIVE' else d.state end,
            state_reason = case
                when {_DIES} then coalesce(nullif(excluded.state_reason, ''), 'FAILURES') else d.state_reason
            end,
            failures = {_FAILURES},
            -- What a person has said about an inactive destination stays.
            error_message = case
                when excluded.last_failure_time is null or d.state_reason = 'DEACTIVATED' then d.error_message
                else excluded.error_message
            end,
            last_success_time = greatest(d.last_success_time, excluded.last_success_time),
            last_failure_time = greatest(d.last_failure_time, excluded.last_failure_time),
            deactivate_time = case when {_DIES} then cast(:now as timestamptz) else d.deactivate_time end,
            version = d.version + case when {_DIES} then 1 else 0 end,
            releasing = d.releasing and not ({_DIES})
        returning {_KEY}, state_reason, coalesce(deactivate_time = :now, false) as is_deactivated
    """


_NOTE_SUCCESSES = text(
    record_signs("""(
        select *, 'SUCCESS' as sign, '' as error_message
        from unnest(
            cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:times as timestamptz[])
        ) as found (organization_id, social_account_id, channel, destination, end_time)
    ) as successes""")
)

_IS_KEY = """
    organization_id = :organization_id and social_account_id = :account_id and channel = :channel
    and destination = :destination
"""
IS_ONE_RELEASING: Final = "exists (select from destination where releasing)"
_IS_ONE_RELEASING = Statement(f"select {IS_ONE_RELEASING}")
_LOCK = text(f"select {_COLUMNS} from destination where {_IS_KEY} for update")
# Waits for nobody. The lock admits other claims; it stops what changes the destination.
_SHARE = text(f"""
    select {_KEY} from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:channels as text[]),
        cast(:destinations as text[])
    ) as w (of_organization, of_account, of_channel, of_destination)
    -- Lateral with a limit, so that all columns are index conditions.
    cross join lateral (
        select {_KEY} from destination
        where organization_id = w.of_organization and social_account_id = w.of_account and channel = w.of_channel
            and destination = w.of_destination
        limit 1 for share skip locked
    ) as shared
""")
_INSERT = text(f"""
    insert into destination ({_COLUMNS})
    values (:organization_id, :account_id, :channel, :destination, {", ".join(f":{name}" for name in _MUTABLE)})
    on conflict do nothing
""")
_SAVE = text(f"""
    update destination set {", ".join(f"{name} = :{name}" for name in _MUTABLE)}, releasing = :releasing
    where {_IS_KEY}
""")
# A key-share lock admits claims and settlements, which change no key.
_FIND_RELEASING = text(f"""
    select {_COLUMNS} from destination where releasing
    order by {_KEY} limit 1 for key share skip locked
""")
_WAITING = f"""
    from post_job where {_IS_KEY} and state_reason = 'DESTINATION_INACTIVE' and state = 'BLOCKED'
        and not_after is not null
"""
_LOCK_WAITING = text(f"""
    select {JOB_COLUMNS} {_WAITING} order by schedule_time, id limit :limit for update skip locked
""")
_LOCK_RELEASING = text(f"select 1 from destination where {_IS_KEY} for update skip locked")
_IS_ONE_WAITING = text(f"select exists (select {_WAITING})")
_END_RELEASING = text(f"update destination set releasing = false where {_IS_KEY}")
_PAGE = f"""
    select {_COLUMNS} from destination
    where organization_id = :organization_id {{conditions}} order by {_KEY} limit :limit
"""


async def note_successes(connection: AsyncConnection, closed: Iterable[Settlement], *, now: datetime) -> None:
    """Notes the posts that a look or late proof has found to be out at a destination."""
    jobs = [each.job for each in closed if each.sign is Sign.SUCCESS and each.job.target.destination]
    if jobs:
        names = {
            "organization_ids": [job.organization_id for job in jobs],
            "account_ids": [job.target.social_account_id for job in jobs],
            "channels": [job.target.channel for job in jobs],
            "destinations": [job.target.destination for job in jobs],
            "times": [job.publish_time for job in jobs],
        }
        await connection.execute(_NOTE_SUCCESSES, names | {"most_failures": MOST_FAILURES, "now": now})


async def lock_destination(connection: AsyncConnection, organization_id: str, target: Target) -> Destination | None:
    row = (await connection.execute(_LOCK, _key(organization_id, target))).one_or_none()
    return None if row is None else _destination(row)


async def share_destinations(
    connection: AsyncConnection, wanted: Iterable[tuple[str, Target]]
) -> set[tuple[str, Target]]:
    """Keeps destinations of posts as they are until this transaction ends; returns those that it could lock."""
    keys = sorted({_key_of(*each) for each in wanted if each[1].destination})
    if not keys:
        return set()
    names = ("organization_ids", "account_ids", "channels", "destinations")
    arrays = {name: list(values) for name, values in zip(names, zip(*keys, strict=True), strict=True)}
    return {
        (organization_id, Target(social_account_id=account_id, channel=channel, destination=destination))
        for organization_id, account_id, channel, destination in await connection.execute(_SHARE, arrays)
    }


async def insert_destination(connection: AsyncConnection, destination: Destination) -> bool:
    """Returns False if the destination exists already; its row is then committed."""
    return (await connection.execute(_INSERT, _values(destination))).rowcount == 1


async def save_destination(connection: AsyncConnection, destination: Destination, *, releasing: bool) -> None:
    """Writes a destination that this transaction has locked. `releasing`: posts may still wait that it let go."""
    await connection.execute(_SAVE, _values(destination) | {"releasing": releasing})


async def is_one_releasing(session: Session) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_RELEASING)
    return found


async def find_releasing(connection: AsyncConnection) -> Destination | None:
    """Returns a destination that was activated, locked so that no other process ends the release meanwhile."""
    row = (await connection.execute(_FIND_RELEASING)).one_or_none()
    return None if row is None else _destination(row)


async def lock_waiting_jobs(connection: AsyncConnection, destination: Destination, *, limit: int) -> list[PostJob]:
    """Locks the first posts that wait for the destination, skipping those that are locked."""
    names = _key(destination.organization_id, destination.target) | {"limit": limit}
    return [job_from(row) for row in await connection.execute(_LOCK_WAITING, names)]


async def end_releasing(connection: AsyncConnection, destination: Destination) -> bool:
    """Ends the release if no post waits any more. Returns whether it has ended."""
    names = _key(destination.organization_id, destination.target)
    if (await connection.execute(_LOCK_RELEASING, names)).one_or_none() is None:
        return False
    # A separate statement: a claim blocks posts under a lock of the destination, so this sees all that it has blocked.
    if (await connection.execute(_IS_ONE_WAITING, names)).scalar_one():
        return False
    await connection.execute(_END_RELEASING, names)
    return True


async def list_destinations(
    connection: AsyncConnection, wanted: DestinationFilter, *, after: Sequence[str] | None, limit: int
) -> list[Destination]:
    """Lists destinations by account, channel and destination, behind the one that ended the page before."""
    conditions, names = "", {"organization_id": wanted.organization_id, "limit": limit}
    if wanted.social_account_id:
        conditions += " and social_account_id = :account_id"
        names["account_id"] = wanted.social_account_id
    if wanted.states == (DestinationState.INACTIVE,):
        # The condition of its index, word for word.
        conditions += " and state = 'INACTIVE'"
    elif wanted.states:
        conditions += " and state = any(cast(:states as text[]))"
        names["states"] = [state.value for state in wanted.states]
    if after:
        conditions += " and (social_account_id, channel, destination) > (:after_account, :after_channel, :after_name)"
        names |= dict(zip(("after_account", "after_channel", "after_name"), after, strict=True))
    return [_destination(row) for row in await connection.execute(text(_PAGE.format(conditions=conditions)), names)]


def _key_of(organization_id: str, target: Target) -> tuple[str, str, str, str]:
    return organization_id, target.social_account_id, target.channel, target.destination


def _key(organization_id: str, target: Target) -> dict[str, Any]:
    return {
        "organization_id": organization_id,
        "account_id": target.social_account_id,
        "channel": target.channel,
        "destination": target.destination,
    }


def _values(destination: Destination) -> dict[str, Any]:
    return _key(destination.organization_id, destination.target) | {
        name: getattr(destination, name) for name in _MUTABLE
    }


def _destination(row: Row[Any]) -> Destination:
    fields = row._asdict()
    account_id, channel, destination = fields.pop("social_account_id"), fields.pop("channel"), fields.pop("destination")
    return Destination(target=Target(social_account_id=account_id, channel=channel, destination=destination), **fields)
