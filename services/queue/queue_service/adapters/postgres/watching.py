"""Reads for those who watch queues, all without locks."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from queue_service.domain.account import AccountKey
from queue_service.domain.listing import list_states
from queue_service.domain.slot import SlotState
from queue_service.domain.watching import QueueState
from servicekit.pg.session import Row, Session, Statement

# OFFSET has each row looked up by its key.
_STATES = Statement("""
    select u.organization_id, u.id, q.next_due_time, coalesce(q.is_held_up, false) as is_held_up,
        q.arrangement, q.pause_time, q.pauser, q.pause_reason, q.hold_revision <> q.hold_stored_revision as is_pending,
        q.enabled and q.time_zone <> '' as is_enabled, q.time_zone, q.skip_next, q.skipped_times, q.late_action,
        q.late_grace, q.pace, a.is_connected, coalesce(q.late_action, 'PUBLISH') as slots_late_action,
        coalesce(q.late_grace, interval '10 minutes') as slots_late_grace,
        coalesce(q.tzdata_version, '') as slots_release, coalesce(q.slots_behind, false) as slots_behind
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    left join lateral (
        select * from account_queue q where q.organization_id = u.organization_id and q.social_account_id = u.id
        offset 0
    ) as q on true
    left join lateral (
        select * from social_account a where a.organization_id = u.organization_id and a.id = u.id offset 0
    ) as a on true
""")
_SETTINGS = (
    "arrangement",
    "pause_time",
    "pauser",
    "pause_reason",
    "is_pending",
    "is_enabled",
    "time_zone",
    "skip_next",
    "skipped_times",
    "late_action",
    "late_grace",
    "pace",
    "is_connected",
)
# What changes slots without an event: their latest times, and the local times of instants. A queue that is absent has
# the defaults, so that its first slot changes nothing.
_LIMITS = ("slots_late_action", "slots_late_grace", "slots_release", "slots_behind")

_FIRST_SCHEDULED = Statement("""
    select s.schedule_time from slot s
    where s.organization_id = :organization_id and s.social_account_id = :social_account_id and s.is_live
        and s.state = 'SCHEDULED'
    order by s.schedule_time limit 1
""")
# One list of states at a time, as in the lists of slots: none of them reads slots outside of the times.
_NOT_SCHEDULED = Statement("""
    select found.id, found.state, found.revision
    from unnest(cast(:list_states as text[])) as wanted (list_state)
    cross join lateral (
        select s.id, s.state, s.revision, s.schedule_time from slot s
        where s.organization_id = :organization_id and s.social_account_id = :social_account_id
            and s.list_state = wanted.list_state and s.schedule_time >= :start and s.schedule_time <= :end
            and s.state <> 'SCHEDULED'
        offset 0
    ) as found
    order by found.schedule_time, found.id
""")
# "is true" leaves only the index by draft: one by account would read all slots of the account.
_LIVE_OF_DRAFTS = Statement("""
    select s.id from unnest(cast(:draft_ids as text[])) as u (id)
    join slot s on s.organization_id = :organization_id and s.draft_id = u.id
        and (s.social_account_id = :social_account_id) is true and s.is_live
""")
_ALL = list_states(SlotState)


async def read_states(session: Session, accounts: Collection[AccountKey]) -> dict[AccountKey, QueueState]:
    """Reads what can change about queues without an event."""
    names = {
        "organization_ids": [organization for organization, _ in accounts],
        "ids": [account for _, account in accounts],
    }
    return {(row.organization_id, row.id): _state(row) for row in await session.fetch(_STATES, names)}


async def first_scheduled(session: Session, account: AccountKey) -> datetime | None:
    """Returns the time of the account's first SCHEDULED slot."""
    row = await session.fetch_row(_FIRST_SCHEDULED, _of(account))
    return row.schedule_time if row else None


async def find_not_scheduled(
    session: Session, account: AccountKey, start: datetime, end: datetime
) -> Mapping[str, tuple[str, int]]:
    """Returns the states and revisions of slots with these times that are not SCHEDULED, by id."""
    names = {**_of(account), "start": start, "end": end, "list_states": _ALL}
    return {row.id: (row.state, row.revision) for row in await session.fetch(_NOT_SCHEDULED, names)}


async def live_slots_of(session: Session, account: AccountKey, draft_ids: Sequence[str]) -> list[str]:
    """Returns the ids of the live slots that these drafts have on the account."""
    return [row.id for row in await session.fetch(_LIVE_OF_DRAFTS, {**_of(account), "draft_ids": draft_ids})]


def _of(account: AccountKey) -> dict[str, object]:
    organization_id, social_account_id = account
    return {"organization_id": organization_id, "social_account_id": social_account_id}


def _state(row: Row) -> QueueState:
    return QueueState(_digest(row, _SETTINGS), _digest(row, _LIMITS), row.next_due_time, row.is_held_up)


def _digest(row: Row, columns: Sequence[str]) -> str:
    """All processes digest alike: instants come from the driver in UTC."""
    values = json.dumps([row[column] for column in columns], default=str)
    return hashlib.blake2b(values.encode(), digest_size=6).hexdigest()
