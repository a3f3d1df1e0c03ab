"""Statements that pause, resume and set up queues. The caller has locked the account, except to find pending holds."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from queue_service.domain.account import AccountKey
from queue_service.domain.hold import Hold
from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Session, Statement

_HOLD = "organization_id, social_account_id, hold_revision, pause_time is not null, pause_reason, pauser"
_OF_KEY = "organization_id = :organization_id and social_account_id = :social_account_id"

_PAUSE = Statement(f"""
    update account_queue set
        pause_time = :now, pauser = :pauser, pause_reason = :reason,
        hold_revision = hold_revision + 1, arrangement = arrangement + 1
    where {_OF_KEY} and pause_time is null
""")
_RESUME = Statement(f"""
    update account_queue set
        pause_time = null, pauser = '', pause_reason = '',
        hold_revision = hold_revision + 1, arrangement = arrangement + cast(:changes as bigint)
    where {_OF_KEY} and pause_time is not null
""")
_FIND_HOLD = Statement(f"""
    select {_HOLD}, hold_revision <> hold_stored_revision from account_queue where {_OF_KEY}
""")
_FIND_PENDING = Statement(f"""
    select {_HOLD} from account_queue
    where hold_revision <> hold_stored_revision
        and (organization_id, social_account_id) > (:organization_id, :social_account_id)
    order by organization_id, social_account_id limit :limit
""")
_MARK_STORED = Statement(f"""
    update account_queue set hold_stored_revision = greatest(hold_stored_revision, cast(:revision as bigint))
    where {_OF_KEY}
    returning pause_time is not null
""")
_OVERTAKE = Statement(f"""
    update account_queue set hold_revision = greatest(hold_revision, cast(:known as bigint)) + 1
    where {_OF_KEY} and hold_revision = :revision
    returning {_HOLD}
""")
_SET_UP = Statement(f"""
    update account_queue set
        late_action = :action, late_grace = :grace, pace = :pace, arrangement = arrangement + 1
    where {_OF_KEY}
""")
# Pages of SCHEDULED slots in the order of `slot_live_time`; the pair is a bound of no other index.
_SET_LIMITS = Statement("""
    with page as materialized (
        select s.id, s.schedule_time from slot s
        where s.organization_id = :organization_id and s.social_account_id = :social_account_id and s.is_live
            and (s.social_account_id, s.schedule_time) > (:social_account_id, cast(:after as timestamptz))
            and s.state = 'SCHEDULED'
        order by s.schedule_time limit :limit
    ),
    changed as (
        update slot s set not_after = s.schedule_time + cast(:late_limit as interval)
        from page
        where s.organization_id = :organization_id and s.id = page.id and s.state = 'SCHEDULED'
            and s.not_after <> s.schedule_time + cast(:late_limit as interval)
    )
    select schedule_time from page order by schedule_time desc limit 1
""")


async def pause(tx: Transaction, account: AccountKey, *, pauser: str, reason: str, now: datetime) -> None:
    """Pauses the queue, unless it is paused."""
    await tx.execute(_PAUSE, _key(account) | {"pauser": pauser, "reason": reason, "now": now})


async def resume(tx: Transaction, account: AccountKey, *, changes_etag: bool) -> None:
    await tx.execute(_RESUME, _key(account) | {"changes": int(changes_etag)})


async def find_hold(session: Session, account: AccountKey) -> tuple[Hold, bool] | None:
    """Returns the last pause or resumption of a queue, and whether Publisher has yet to store it."""
    rows = await session.fetch(_FIND_HOLD, _key(account))
    return (_hold(rows[0]), rows[0][6]) if rows else None


async def find_pending_holds(session: Session, after: AccountKey, *, limit: int) -> list[Hold]:
    return list(map(_hold, await session.fetch(_FIND_PENDING, _key(after) | {"limit": limit})))


async def mark_stored(tx: Transaction, hold: Hold) -> bool:
    """Records that Publisher has stored the hold or its release. Returns whether the queue is paused; locks it."""
    rows = await tx.fetch(_MARK_STORED, _key(hold.account) | {"revision": hold.revision})
    return bool(rows and rows[0][0])


async def overtake(tx: Transaction, hold: Hold, known: int) -> Hold | None:
    """Gives the queue's last pause or resumption a revision after `known`. Returns None if this one is not the last."""
    rows = await tx.fetch(_OVERTAKE, _key(hold.account) | {"revision": hold.revision, "known": known})
    return _hold(rows[0]) if rows else None


async def set_up(tx: Transaction, account: AccountKey, policy: LatePolicy, pace: timedelta) -> None:
    names = {"action": LateAction(policy.action), "grace": policy.grace, "pace": pace}
    await tx.execute(_SET_UP, _key(account) | names)


async def set_limits(
    tx: Transaction, account: AccountKey, *, late_limit: timedelta, after: datetime, limit: int
) -> datetime | None:
    """Gives SCHEDULED slots after that time their latest times; returns the time of the last one, None at the end."""
    names = {"late_limit": late_limit, "after": after, "limit": limit}
    rows: Sequence[Row] = await tx.fetch(_SET_LIMITS, _key(account) | names)
    return rows[0][0] if rows else None


def _key(account: AccountKey) -> dict[str, object]:
    return {"organization_id": account[0], "social_account_id": account[1]}


def _hold(row: Row) -> Hold:
    return Hold(
        organization_id=row[0],
        social_account_id=row[1],
        revision=row[2],
        in_force=row[3],
        reason=row[4],
        holder=row[5],
    )
