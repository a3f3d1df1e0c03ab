"""Holds, the gates of the accounts that they cover, and the epoch that tells a send whether any was put."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key
from publisher_service.domain.hold import Hold, HoldFilter, Scope
from servicekit.pg.session import Session, Statement

_COLUMNS = (
    "organization_id",
    "id",
    "scope",
    "scope_id",
    "revision",
    "reason",
    "holder",
    "in_force",
    "create_time",
    "update_time",
    "end_time",
)
_HOLD = ", ".join(_COLUMNS)

# An absent row cannot be locked: the placeholder of a first put or release waits for another one, and is overwritten.
_ADD = text(f"""
    insert into hold ({_HOLD}) values (:organization_id, :id, '', '', 0, '', '', false, :now, :now, null)
    on conflict do nothing
""")
_LOCK = text(f"select {_HOLD} from hold where organization_id = :organization_id and id = :id for update")
_SAVE = text(f"""
    update hold set {", ".join(f"{name} = :{name}" for name in _COLUMNS[2:])}
    where organization_id = :organization_id and id = :id
""")
_ALL = f"""
    select {_HOLD} from hold
    where organization_id = :organization_id and in_force {{behind}} order by create_time, id limit :limit
"""
# Each kind of hold has a page of its own, found by index, and the page is taken from those.
_OF_SCOPES = f"""
    select {_HOLD} from unnest(cast(:scopes as text[])) as wanted (wanted_scope) cross join lateral (
        select {_HOLD} from hold
        where organization_id = :organization_id and scope = wanted_scope and scope <> '' and in_force {{behind}}
        order by create_time, id limit :limit
    ) as found
    order by create_time, id limit :limit
"""
_OF_THINGS = f"""
    select {_HOLD}
    from unnest(cast(:scopes as text[]), cast(:scope_ids as text[])) as wanted (wanted_scope, wanted_id)
    cross join lateral (
        select {_HOLD} from hold
        where organization_id = :organization_id and scope = wanted_scope and scope_id = wanted_id and in_force
            {{behind}}
        order by create_time, id limit :limit
    ) as found
    order by create_time, id limit :limit
"""
_PROVIDER = text("select provider from social_account where organization_id = :organization_id and id = :id")

IS_ONE_OVER: Final = "exists (select from hold where in_force and end_time <= :now)"
_IS_ONE_OVER = Statement(f"select {IS_ONE_OVER}")
_LOCK_OVER = text(f"""
    select {_HOLD} from hold where in_force and end_time <= :now order by end_time limit 1 for update skip locked
""")

_LOCK_GATE = text("""
    select 1 from account_gate where organization_id = :organization_id and social_account_id = :id
    for no key update
""")

# Whether anything waits is not known here. The line is relabeled and, once it is released, looked at in any case.
_SET_HELD = text("""
    update account_gate g set held = h.held, lined = true, relabel = true,
        wake_time = case
            when g.connected and not h.held and g.enabled and g.open_job_id is null
                then greatest(cast(:now as timestamptz), g.resume_time)
        end
    from (
        select exists (
            select from hold
            where organization_id = :organization_id and scope = 'ACCOUNT' and scope_id = :id and in_force
        ) as held
    ) as h
    where g.organization_id = :organization_id and g.social_account_id = :id
""")

_RAISE_EPOCH = text("""
    insert into hold_epoch as h values (true, 1) on conflict (id) do update set epoch = h.epoch + 1
""")
_EPOCH = Statement("select epoch from hold_epoch")

# What is being sent is named by the gate. All else that may be out is in doubt, and has an index of its own. The last
# part is rare: proof of an earlier attempt has ended the job and freed the gate, which stays paused until the lease of
# the later attempt ends. Its process may still begin.
_IN_FLIGHT = text("""
    select j.id from account_gate g
    join post_job j on j.organization_id = g.organization_id and j.id = g.open_job_id
    where g.organization_id = :organization_id and g.social_account_id = :id and j.state = 'SENDING'
    union
    select id from post_job
    where organization_id = :organization_id and social_account_id = :id and in_doubt
    union
    select j.id from account_gate g
    -- The offset keeps the claims behind the gate: only those of a paused account are read.
    cross join lateral (
        select job_id from open_claim c
        cross join lateral unnest(c.organization_ids, c.post_job_ids) as claimed (of_organization, job_id)
        where c.lease_end > :now and g.resume_time > :now and of_organization = :organization_id
        offset 0
    ) as one
    -- Lateral with a limit, so that each is found by key.
    cross join lateral (
        select id, fence from post_job
        where organization_id = :organization_id and id = one.job_id and social_account_id = :id
            and state = 'PUBLISHED'
        limit 1
    ) as j
    join attempt a on a.organization_id = :organization_id and a.post_job_id = j.id and a.fence = j.fence
    where g.organization_id = :organization_id and g.social_account_id = :id and a.state = 'ABANDONED'
    order by id
""")


async def lock_hold(connection: AsyncConnection, key: Key, *, now: datetime) -> Hold | None:
    """Locks the hold; None for one that was neither put nor released yet, which nobody else can put meanwhile."""
    names = {"organization_id": key[0], "id": key[1]}
    await connection.execute(_ADD, names | {"now": now})
    found = _hold((await connection.execute(_LOCK, names)).one())
    return found if found.revision else None


async def save_hold(connection: AsyncConnection, hold: Hold) -> None:
    """Writes a hold that this transaction has locked."""
    await connection.execute(_SAVE, {name: getattr(hold, name) for name in _COLUMNS})


async def is_one_over(session: Session, *, now: datetime) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_OVER, {"now": now})
    return found


async def lock_over(connection: AsyncConnection, *, now: datetime) -> Hold | None:
    """Locks a hold in force whose end has come."""
    row = (await connection.execute(_LOCK_OVER, {"now": now})).one_or_none()
    return None if row is None else _hold(row)


async def list_holds(
    connection: AsyncConnection, wanted: HoldFilter, *, after: tuple[datetime, str] | None, limit: int
) -> list[Hold]:
    """Lists holds that are in force, oldest first, behind the (create_time, id) that ended the page before."""
    behind, names = "", {"organization_id": wanted.organization_id, "limit": limit}
    if after:
        behind = "and (create_time, id) > (:create_time, :after_id)"
        names |= {"create_time": after[0], "after_id": after[1]}
    things = await _things(connection, wanted)
    if things is not None:
        form = _OF_THINGS
        names |= {"scopes": [scope for scope, _ in things], "scope_ids": [scope_id for _, scope_id in things]}
    elif wanted.scopes:
        form = _OF_SCOPES
        names["scopes"] = sorted(set(wanted.scopes))
    else:
        form = _ALL
    return [_hold(row) for row in await connection.execute(text(form.format(behind=behind)), names)]


async def lock_gate(connection: AsyncConnection, account: Key) -> None:
    """Locks the account's gate: waits for the claims and settlements that hold it, and stops new ones."""
    await connection.execute(_LOCK_GATE, _names(account))


async def set_held(connection: AsyncConnection, account: Key, *, now: datetime) -> None:
    """Closes or opens the gate, which this transaction has locked, by the holds that are in force."""
    await connection.execute(_SET_HELD, _names(account) | {"now": now})


async def raise_hold_epoch(connection: AsyncConnection) -> None:
    """Tells every send that a hold was put. All puts wait here for each other: to be done last."""
    await connection.execute(_RAISE_EPOCH)


async def hold_epoch(session: Session) -> int:
    """Returns how many holds were put; it differs from an earlier answer if any was put since."""
    epoch: int | None = await session.fetch_value(_EPOCH)
    return epoch or 0


async def in_flight_jobs(connection: AsyncConnection, account: Key, *, now: datetime) -> Sequence[str]:
    """Returns the post jobs of the account that are being sent or may be out, or of which an attempt may yet begin."""
    return list((await connection.execute(_IN_FLIGHT, _names(account) | {"now": now})).scalars())


async def _things(connection: AsyncConnection, wanted: HoldFilter) -> Sequence[tuple[str, str]] | None:
    """Returns the scopes and ids of which holds are wanted; None if every id is."""
    if wanted.social_account_id:
        account = (wanted.organization_id, wanted.social_account_id)
        provider = (await connection.execute(_PROVIDER, _names(account))).scalar_one_or_none()
        things = [(Scope.ACCOUNT, account[1]), (Scope.ORGANIZATION, ""), (Scope.PROVIDER, provider or "")]
        things = [(scope, scope_id) for scope, scope_id in things if wanted.scope_id in ("", scope_id)]
    elif wanted.scope_id:
        things = [(scope, wanted.scope_id) for scope in Scope]
    else:
        return None
    return [(scope, scope_id) for scope, scope_id in things if scope in (wanted.scopes or Scope)]


def _names(account: Key) -> dict[str, Any]:
    return {"organization_id": account[0], "id": account[1]}


def _hold(row: Row[Any]) -> Hold:
    return Hold(**row._asdict())
