"""Statements for taking dispatched slots back from Publisher: the intention stands in `slot.taking_back`."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.account import AccountKey
from queue_service.domain.command import ANSWERED_DELAY
from queue_service.domain.job import ENDED, TAKEN_BACK, JobState
from queue_service.domain.policy import MOST_LEAD
from queue_service.domain.slot import TakingBack
from queue_service.domain.take_back import SlotPost
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Session, Statement

SlotKey = tuple[str, str]

_MOST = 10_000
"""More slots of an account are never dispatched at a time: that many commands may be outstanding."""
# A job in one of these states has an open attempt, or may be out: it is too late for it.
_STARTED = sorted({JobState.SENDING, JobState.UNKNOWN, *ENDED})

# Found in the order of `slot_live_time`; no other index has the pair of account and time.
_DISPATCHED = Statement("""
    select s.organization_id, s.id
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    cross join lateral (
        select s.organization_id, s.id from slot s
        where s.organization_id = u.organization_id and s.social_account_id = u.social_account_id and s.is_live
            and (s.social_account_id, s.schedule_time) <= (u.social_account_id, cast(:until as timestamptz))
            and s.state = 'DISPATCHED'
        order by s.schedule_time limit :each
    ) as s
""")
_UNASKED = Statement("""
    select q.organization_id, q.social_account_id, s.id
    from (
        select organization_id, social_account_id from account_queue
        where pause_time is not null and (organization_id, social_account_id) > (:organization_id, :social_account_id)
        order by organization_id, social_account_id limit :limit
    ) as q
    left join lateral (
        select s.id from slot s
        where s.organization_id = q.organization_id and s.social_account_id = q.social_account_id and s.is_live
            and (s.social_account_id, s.schedule_time) <= (q.social_account_id, cast(:until as timestamptz))
            and s.state = 'DISPATCHED' and s.taking_back = '' and s.update_time <= :before and exists (
                select from slot_target t
                where t.organization_id = s.organization_id and t.slot_id = s.id
                    and (t.job_state is null or t.job_state <> all(cast(:started as text[])))
            )
        order by s.schedule_time limit :each
    ) as s on true
    order by q.organization_id, q.social_account_id
""")
# Locks the slots in the order of their keys. CANCEL prevails over RETURN; without a purpose the intention stays. Posts
# that were given back already are asked for again, which changes nothing: the answer settles what is left to settle.
_INTEND = Statement("""
    with named as materialized (
        select s.organization_id, s.id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
        join slot s on s.organization_id = u.organization_id and s.id = u.id
        where s.state = 'DISPATCHED' and (:purpose <> '' or s.taking_back <> '')
        order by s.organization_id, s.id for update of s
    ),
    intended as (
        update slot s set
            taking_back = case when s.taking_back = 'CANCEL' or :purpose = '' then s.taking_back else :purpose end,
            state_reason = case when :purpose = 'CANCEL' then :reason when s.taking_back = 'CANCEL' then s.state_reason
                else '' end,
            update_time = :now
        from named n
        where s.organization_id = n.organization_id and s.id = n.id and s.state = 'DISPATCHED'
        returning s.*
    )
    select i.organization_id, i.social_account_id, i.id, i.revision, i.sequence, i.draft_id, i.taking_back,
        i.state_reason, t.channel, t.destination
    from intended i join slot_target t on t.organization_id = i.organization_id and t.slot_id = i.id
    where t.job_state is null or t.job_state <> all(cast(:ended as text[])) or t.state_reason = :taken_back
    order by i.organization_id, i.id, t.channel, t.destination
""")
# Another answer, for which it was too late, may have cleared the intention meanwhile.
_RENEW = Statement("""
    update slot s set taking_back = u.purpose, state_reason = u.reason
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:revisions as bigint[]),
        cast(:purposes as text[]), cast(:reasons as text[])
    ) as u (organization_id, id, revision, purpose, reason)
    where s.organization_id = u.organization_id and s.id = u.id and s.revision = u.revision
        and s.state = 'DISPATCHED' and s.taking_back = ''
""")
# The intention stays while a target of the slot has been given back, which then has to be sent or canceled. It stays
# in a paused queue, too, whose posts are asked for until they have ended.
_GIVE_UP = Statement("""
    update slot s set taking_back = '', state_reason = ''
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:revisions as bigint[]))
        as u (organization_id, id, revision)
    where s.organization_id = u.organization_id and s.id = u.id and s.revision = u.revision
        and s.is_live and s.taking_back <> ''
        and not exists (
            select from slot_target t
            where t.organization_id = u.organization_id and t.slot_id = u.id
                and t.job_state = 'CANCELED' and t.state_reason = :taken_back
        )
        and not (s.taking_back = 'RETURN' and exists (
            select from account_queue q
            where q.organization_id = u.organization_id and q.social_account_id = s.social_account_id
                and q.pause_time is not null
        ))
""")
_INTENDED = Statement("""
    select s.organization_id, s.social_account_id, s.id, s.state = 'DISPATCHED'
    from slot s
    where s.taking_back <> '' and (s.organization_id, s.social_account_id) >= (:organization_id, :social_account_id)
        and (s.organization_id, s.social_account_id, s.id) > (:organization_id, :social_account_id, :id)
        and s.update_time <= :before
    order by s.organization_id, s.social_account_id, s.id limit :limit
""")
_LOCK_PAUSED = Statement("""
    select true from account_queue
    where organization_id = :organization_id and social_account_id = :social_account_id and pause_time is not null
    for update
""")
# The previous release cancels a slot that was to return. It is asked for again, unless its time has been given away, or
# its draft has another slot.
_REVIVE = Statement("""
    update slot s set state = 'DISPATCHED', state_reason = '', next_emit_at = :later, update_time = :now
    from (
        select s.organization_id, s.id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
        cross join lateral (
            select * from slot s where s.organization_id = u.organization_id and s.id = u.id offset 0
        ) as s
        where s.state = 'CANCELED' and s.taking_back = 'RETURN'
            and exists (
                select from slot_target t
                where t.organization_id = s.organization_id and t.slot_id = s.id and t.job_state = 'CANCELED'
                    and t.state_reason = :taken_back
            )
            and not exists (
                select from slot o
                where o.organization_id = s.organization_id and o.draft_id = s.draft_id
                    and o.social_account_id = s.social_account_id and o.is_live
            )
            and not exists (
                select from slot o
                where o.organization_id = s.organization_id and o.social_account_id = s.social_account_id and o.is_live
                    and o.schedule_time > s.schedule_time - interval '1 minute'
                    and o.schedule_time < s.schedule_time + interval '1 minute'
            )
        order by s.organization_id, s.id
    ) as ended
    where s.organization_id = ended.organization_id and s.id = ended.id
    returning s.organization_id, s.id
""")
_FORGET_ENDED = Statement("""
    update slot s set taking_back = ''
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    where s.organization_id = u.organization_id and s.id = u.id and s.state <> 'DISPATCHED'
""")


async def find_dispatched(tx: Transaction, accounts: Sequence[AccountKey], *, now: datetime) -> list[SlotKey]:
    """Returns the dispatched slots of locked accounts."""
    names = _accounts(accounts) | {"until": now + MOST_LEAD, "each": _MOST}
    return [(organization, slot) for organization, slot in await tx.fetch(_DISPATCHED, names)]


async def find_unasked(
    session: Session, after: AccountKey, *, before: datetime, now: datetime, limit: int
) -> tuple[list[tuple[AccountKey, str]], AccountKey | None]:
    """Returns slots of paused accounts that were dispatched before then, have not started and were not asked for.

    Also returns the last account that was looked at, if there are more.
    """
    names = {
        "organization_id": after[0],
        "social_account_id": after[1],
        "before": before,
        "until": now + MOST_LEAD,
        "started": _STARTED,
        "limit": limit,
        "each": limit,
    }
    rows = await session.fetch(_UNASKED, names)
    accounts = sorted({(organization, account) for organization, account, _ in rows})
    last = accounts[-1] if len(accounts) == limit else None
    return [((organization, account), slot) for organization, account, slot in rows if slot is not None], last


async def intend(
    tx: Transaction, slots: Iterable[SlotKey], *, purpose: TakingBack, reason: str = "", now: datetime
) -> list[SlotPost]:
    """Records what becomes of dispatched slots once they are given back. Returns the posts to ask for.

    With `TakingBack.NO` the intentions stay as they are.
    """
    names = _slots(slots) | {"purpose": purpose, "reason": reason, "now": now, "ended": sorted(ENDED)}
    names["taken_back"] = TAKEN_BACK
    await pin_plans(tx)
    return list(map(_post, await tx.fetch(_INTEND, names)))


async def renew(tx: Transaction, posts: Sequence[SlotPost]) -> None:
    """Records the intentions again with which these posts were asked for and given back."""
    if posts:
        by_slot = {post.slot_key: post for post in posts}
        ordered = [by_slot[key] for key in sorted(by_slot)]
        names = _revisions(ordered) | {
            "purposes": [post.purpose for post in ordered],
            "reasons": [post.reason for post in ordered],
        }
        await tx.execute(_RENEW, names)


async def give_up(tx: Transaction, posts: Sequence[SlotPost]) -> None:
    """Clears the intentions for slots with posts for which it was too late."""
    if posts:
        by_slot = {post.slot_key: post for post in posts}
        ordered = [by_slot[key] for key in sorted(by_slot)]
        await tx.execute(_GIVE_UP, _revisions(ordered) | {"taken_back": TAKEN_BACK})


async def find_intended(
    session: Session, after: tuple[str, str, str], *, before: datetime, limit: int
) -> list[tuple[AccountKey, str, bool]]:
    """Returns slots with an intention that has been there since `before`, and whether they are still dispatched."""
    organization, account, slot = after
    names = {
        "organization_id": organization,
        "social_account_id": account,
        "id": slot,
        "before": before,
        "limit": limit,
    }
    return [((row[0], row[1]), row[2], row[3]) for row in await session.fetch(_INTENDED, names)]


async def lock_paused(tx: Transaction, account: AccountKey) -> bool:
    """Locks the account if its queue is paused, and returns whether it is."""
    names = {"organization_id": account[0], "social_account_id": account[1]}
    return bool(await tx.fetch(_LOCK_PAUSED, names))


async def revive(tx: Transaction, slots: Sequence[SlotKey], *, now: datetime) -> int:
    """Has slots of locked accounts asked for again that the previous release has canceled; returns how many.

    Forgets the intentions for all other slots that are not dispatched.
    """
    names = _slots(slots)
    later = now + ANSWERED_DELAY
    revived = await tx.fetch(_REVIVE, names | {"taken_back": TAKEN_BACK, "now": now, "later": later})
    await tx.execute(_FORGET_ENDED, names)
    return len(revived)


def _post(row: Row) -> SlotPost:
    return SlotPost(
        organization_id=row[0],
        social_account_id=row[1],
        slot_id=row[2],
        slot_revision=row[3],
        slot_sequence=row[4],
        draft_id=row[5],
        purpose=TakingBack(row[6]),
        reason=row[7],
        channel=row[8],
        destination=row[9],
    )


def _accounts(accounts: Iterable[AccountKey]) -> dict[str, object]:
    ordered = sorted(accounts)
    return {
        "organization_ids": [organization for organization, _ in ordered],
        "social_account_ids": [account for _, account in ordered],
    }


def _slots(slots: Iterable[SlotKey]) -> dict[str, object]:
    ordered = sorted(slots)
    return {"organization_ids": [organization for organization, _ in ordered], "ids": [slot for _, slot in ordered]}


def _revisions(posts: Sequence[SlotPost]) -> dict[str, object]:
    return _slots(post.slot_key for post in posts) | {"revisions": [post.slot_revision for post in posts]}
