"""The life of credentials: what is known of them, when something is to be done, and the journal of their refreshes.

To write a row, a transaction locks the gate, the account and the row, in this order. A process that takes what is due
locks the row alone, and skips one that is locked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.marks import IN_SAFE_MODE
from publisher_service.domain.account import AccountState
from publisher_service.domain.refresh import (
    CredentialsState,
    Due,
    JournalState,
    Lifetime,
    step_at,
)

_LIFETIME = ("expire_time", "refresh_expire_time", "scopes", "is_refreshable")
_STATE = (
    "provider",
    "generation",
    "refresh_time",
    "next_time",
    "lease_end",
    "number",
    "failures",
    "failing_since",
    "error",
    "is_refused",
    "is_urgent",
    "is_forced",
    "is_warned",
    "last_refresh_time",
)
_COLUMNS = (*_STATE, *_LIFETIME)
_NAMES = ", ".join(_COLUMNS)
_OF_ROW = ", ".join(f"c.{name}" for name in _COLUMNS)
_SET = ", ".join(f"{name} = :{name}" for name in _COLUMNS)
_PREFIX = "credential_"

CREDENTIALS: Final = f"""
    left join lateral (
        select {", ".join(f"{name} as {_PREFIX}{name}" for name in _COLUMNS)} from credential c
        where c.organization_id = social_account.organization_id and c.social_account_id = social_account.id
    ) as life on true
"""
"""Joined to accounts that are read, for `credentials_from`."""

# In safe mode nothing is refreshed: the refresh token of an older copy may be one that was used, and would revoke the
# account's newer ones.
IS_ONE_DUE: Final = f"exists (select from credential where next_time <= :now) and not {IN_SAFE_MODE}"

_LOCK = text(f"""
    select {_NAMES} from credential where organization_id = :organization_id and social_account_id = :id for update
""")
_PUT = text(f"""
    insert into credential (organization_id, social_account_id, sealed_digest, {_NAMES})
    values (:organization_id, :id, sha256(:sealed), {", ".join(f":{name}" for name in _COLUMNS)})
    on conflict (organization_id, social_account_id) do update set
        {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)},
        sealed_digest = excluded.sealed_digest, replaced_digest = null
""")
_SAVE = text(f"""
    update credential set {_SET} where organization_id = :organization_id and social_account_id = :id
""")
# Walks up to so many organizations behind `after`, and takes an equal share of each of those that have something due.
_TAKE = text(f"""
    with recursive organization as (
        (
            select organization_id, 1 as place from credential
            where provider = :provider and next_time is not null and organization_id > :after
            order by organization_id limit 1
        )
        union all
        select next.organization_id, o.place + 1 from organization o cross join lateral (
            select organization_id from credential
            where provider = :provider and next_time is not null and organization_id > o.organization_id
            order by organization_id limit 1
        ) as next
        where o.place < :pool
    ),
    busy as (
        select o.organization_id, ceil(cast(:limit as numeric) / count(*) over ()) as share
        from organization o cross join lateral (
            select from credential
            where provider = :provider and organization_id = o.organization_id and next_time <= :now limit 1
        ) as one
        where not {IN_SAFE_MODE}
    ),
    due as materialized (
        select first.organization_id, first.social_account_id from busy b cross join lateral (
            select organization_id, social_account_id from credential
            where provider = :provider and organization_id = b.organization_id and next_time <= :now
            order by next_time limit cast(b.share as bigint) for update skip locked
        ) as first
        limit :limit
    ),
    taken as (
        update credential c set next_time = :lease_end, lease_end = :lease_end, number = c.number + 1
        from due
        -- Lateral with an offset, so that each is found by key.
        cross join lateral (
            select external_account_id, settings, credentials, state from social_account
            where organization_id = due.organization_id and id = due.social_account_id
            offset 0
        ) as s
        where c.organization_id = due.organization_id and c.social_account_id = due.social_account_id
        returning c.organization_id, c.social_account_id as id, {_OF_ROW}, s.external_account_id, s.settings,
            s.credentials as sealed, s.state as account_state, c.sealed_digest = sha256(s.credentials) as is_known
    )
    select walk.last, walk.walked, taken.*
    from (select max(organization_id) as last, count(*) as walked from organization) as walk
    left join taken on true
""")
_INTEND = text("""
    insert into credential_refresh (organization_id, social_account_id, number, generation, state, process, begin_time,
        error)
    select organization_id, id, number, generation, 'INTENT', :process, :now, ''
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:numbers as bigint[]),
        cast(:generations as bigint[])) as begun (organization_id, id, number, generation)
""")
# The gate first, as everywhere. Each row is read again once it is locked.
_LOCK_ALL = text(f"""
    select s.credentials as sealed, s.state as account_state, c.sealed_digest = sha256(s.credentials) as is_known,
        {_OF_ROW}
    from account_gate g
    join social_account s on s.organization_id = g.organization_id and s.id = g.social_account_id
    join credential c on c.organization_id = g.organization_id and c.social_account_id = g.social_account_id
    where g.organization_id = :organization_id and g.social_account_id = :id
    for no key update of g, s, c
""")
_SAVE_REFRESHED = text(f"""
    with stored as (
        update social_account set credentials = :sealed where organization_id = :organization_id and id = :id
    ),
    ended as (
        update credential_refresh set state = 'DONE', end_time = :now
        where organization_id = :organization_id and social_account_id = :id and number = :asked_number
    )
    update credential set {_SET}, sealed_digest = sha256(:sealed), replaced_digest = sha256(:replaced)
    where organization_id = :organization_id and social_account_id = :id
""")
_END = text("""
    update credential_refresh set state = :state, end_time = :now, error = :error
    where organization_id = :organization_id and social_account_id = :id and number = :number and state = 'INTENT'
""")
_IS_CRASHED = text("""
    select exists (
        select from credential_refresh
        where organization_id = :organization_id and social_account_id = :id and generation = :generation
            and number < :number and state <> 'REFUSED'
    )
""")
_COUNT_EXPIRING = text("""
    select count(*) from (
        select from credential where is_warned and next_time is not null limit :most
    ) as found
""")
_DROP = text("""
    with over as materialized (
        select organization_id, social_account_id, number from credential_refresh
        where begin_time < :before limit :limit for update skip locked
    )
    delete from credential_refresh r using over
    where r.organization_id = over.organization_id and r.social_account_id = over.social_account_id
        and r.number = over.number
""")
_POOL = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePage:
    taken: Sequence[Due]
    # Where the next walk goes on; empty after the last organization.
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedCredentials:
    """The credentials of an account whose gate, account and state this transaction has locked."""

    state: CredentialsState
    sealed: bytes = field(repr=False)
    account_state: str
    is_known: bool


def credentials_from(fields: dict[str, Any]) -> CredentialsState | None:
    """Takes the columns of CREDENTIALS out of those of an account; None if nothing is known."""
    found = {name: fields.pop(f"{_PREFIX}{name}", None) for name in _COLUMNS}
    return None if found["generation"] is None else _state(found)


async def lock_credential(connection: AsyncConnection, account: Key) -> CredentialsState | None:
    row = (await connection.execute(_LOCK, _key(account))).one_or_none()
    return None if row is None else _state(row._asdict())


async def put_credential(connection: AsyncConnection, account: Key, state: CredentialsState, sealed: bytes) -> None:
    """Writes the state of credentials that were connected or erased."""
    await connection.execute(_PUT, _values(account, state) | {"sealed": sealed})


async def save_credential(connection: AsyncConnection, account: Key, state: CredentialsState) -> None:
    """Writes the state of credentials that stay the same."""
    await connection.execute(_SAVE, _values(account, state))


async def take_due(
    connection: AsyncConnection, provider: str, *, after: str, now: datetime, lease_end: datetime, limit: int
) -> DuePage:
    """Takes credentials of which something is due, fairly over the organizations behind `after`."""
    names = {"provider": provider, "after": after, "now": now, "lease_end": lease_end, "limit": limit, "pool": _POOL}
    rows = (await connection.execute(_TAKE, names)).all()
    taken = [_due(row, now) for row in rows if row.id is not None]
    return DuePage(taken=taken, last=rows[0].last if rows[0].walked == _POOL else "")


async def record_intents(connection: AsyncConnection, begun: Iterable[Due], *, process: str, now: datetime) -> None:
    """Writes into the journal which refreshes begin."""
    due = list(begun)
    if due:
        names = {
            "organization_ids": [each.organization_id for each in due],
            "ids": [each.account_id for each in due],
            "numbers": [each.state.number for each in due],
            "generations": [each.state.generation for each in due],
        }
        await connection.execute(_INTEND, names | {"process": process, "now": now})


async def lock_credentials(connection: AsyncConnection, account: Key) -> LockedCredentials | None:
    """Locks the gate, the account and the state of its credentials."""
    row = (await connection.execute(_LOCK_ALL, _key(account))).one_or_none()
    if row is None:
        return None
    fields = row._asdict()
    others = {name: fields.pop(name) for name in ("sealed", "account_state", "is_known")}
    return LockedCredentials(state=_state(fields), **others)


async def save_refreshed(
    connection: AsyncConnection,
    due: Due,
    state: CredentialsState,
    *,
    sealed: bytes,
    replaced: bytes,
    now: datetime,
) -> None:
    """Writes the next generation, and into the journal that the refresh is done."""
    names = {"sealed": sealed, "replaced": replaced, "asked_number": due.state.number, "now": now}
    await connection.execute(_SAVE_REFRESHED, _values(due.key, state) | names)


async def end_refresh(connection: AsyncConnection, due: Due, state: JournalState, error: str, *, now: datetime) -> None:
    """Writes the end of a refresh into the journal."""
    names = _key(due.key) | {"number": due.state.number, "state": state, "error": error, "now": now}
    await connection.execute(_END, names)


async def was_asked_before(connection: AsyncConnection, due: Due) -> bool:
    """Returns whether an earlier refresh of this generation may have reached the provider, without a proper answer."""
    names = _key(due.key) | {"number": due.state.number, "generation": due.state.generation}
    found: bool = (await connection.execute(_IS_CRASHED, names)).scalar_one()
    return found


async def count_expiring(connection: AsyncConnection, *, most: int) -> int:
    """Counts the accounts that soon can post no more unless a person connects them again."""
    counted: int = (await connection.execute(_COUNT_EXPIRING, {"most": most})).scalar_one()
    return counted


async def drop_refreshes(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Deletes entries of the journal. Returns their number."""
    return (await connection.execute(_DROP, {"before": before, "limit": limit})).rowcount


def _due(row: Row[Any], now: datetime) -> Due:
    fields = row._asdict()
    state = _state(fields)
    return Due(
        organization_id=row.organization_id,
        account_id=row.id,
        state=state,
        step=step_at(state, now),
        external_account_id=row.external_account_id,
        settings=row.settings,
        sealed=row.sealed,
        is_connected=row.account_state == AccountState.CONNECTED,
        is_known=row.is_known,
        take_time=now,
    )


def _state(fields: Mapping[str, Any]) -> CredentialsState:
    lifetime = Lifetime(**{name: fields[name] for name in _LIFETIME} | {"scopes": tuple(fields["scopes"])})
    return CredentialsState(lifetime=lifetime, **{name: fields[name] for name in _STATE})


def _values(account: Key, state: CredentialsState) -> dict[str, Any]:
    own = {name: getattr(state, name) for name in _STATE}
    lifetime = {name: getattr(state.lifetime, name) for name in _LIFETIME}
    return _key(account) | own | lifetime | {"scopes": list(state.lifetime.scopes)}


def _key(account: Key) -> dict[str, Any]:
    return {"organization_id": account[0], "id": account[1]}
