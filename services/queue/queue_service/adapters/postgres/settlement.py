"""The statements of settlement, which every post passes; they take batches. The rules are those of `dispatch`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.account_store import account_queue
from queue_service.adapters.postgres.statements import rows_by_slot
from queue_service.domain.account import AccountQueue
from queue_service.domain.frontier import Frontier
from queue_service.domain.job import JobState
from queue_service.domain.settlement import Progress, TargetProgress
from queue_service.domain.slot import SlotState

_SLOT_STATES = {state.value: state for state in SlotState}
_JOB_STATES = {None: None} | {state.value: state for state in JobState}

# In the order of the fields of Progress, then of TargetProgress.
_PROGRESS = """
    s.organization_id, s.id, s.draft_id, s.social_account_id, s.revision, s.schedule_time, s.state, s.next_emit_at,
    s.expected_time, s.publish_time, s.is_answered, s.state_reason, t.channel, t.destination, t.job_state,
    t.job_version, t.next_action_time, t.publish_time, t.of_another_slot
"""
# Locks in one order, and returns the newest version of what it has locked, however long it had to wait.
_LOCK_PROGRESS = text(f"""
    select {_PROGRESS}
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    join slot s on s.organization_id = u.organization_id and s.id = u.id
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.organization_id, s.id, t.channel, t.destination
    for update of s, t
""")
_LOCK_LIVE_PROGRESS = text(f"""
    select {_PROGRESS}
    from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, draft_id, social_account_id)
    join slot s on s.organization_id = u.organization_id and s.draft_id = u.draft_id
        and s.social_account_id = u.social_account_id and s.state in ('SCHEDULED', 'DISPATCHED')
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.organization_id, s.id, t.channel, t.destination
    for update of s, t
""")
# A target that joined the slot while its lock was waited for is not in what was read: such a slot is left as the join
# has made it, to be settled by the next report. This statement's snapshot is younger than the lock and counts it.
_SAVE_PROGRESS = text("""
    with told as (
        update slot_target t set
            post_job_id = r.post_job_id, job_state = r.job_state, job_version = r.job_version,
            external_url = r.external_url, error_message = r.error_message, state_reason = r.state_reason,
            next_action_time = r.next_action_time, publish_time = r.publish_time, of_another_slot = r.of_another_slot
        from unnest(
            cast(:target_organization_ids as text[]), cast(:target_slot_ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:post_job_ids as text[]), cast(:job_states as text[]),
            cast(:job_versions as bigint[]), cast(:external_urls as text[]), cast(:error_messages as text[]),
            cast(:target_state_reasons as text[]), cast(:next_action_times as timestamptz[]),
            cast(:target_publish_times as timestamptz[]), cast(:of_another_slot as boolean[])
        ) as r (organization_id, slot_id, channel, destination, post_job_id, job_state, job_version, external_url,
            error_message, state_reason, next_action_time, publish_time, of_another_slot)
        where t.organization_id = r.organization_id and t.slot_id = r.slot_id and t.channel = r.channel
            and t.destination = r.destination and t.job_version < r.job_version
    )
    update slot s set
        state = r.state, next_emit_at = r.next_emit_at, expected_time = r.expected_time,
        publish_time = r.publish_time, is_answered = r.is_answered, state_reason = r.state_reason, update_time = :now
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:states as text[]),
        cast(:next_emit_ats as timestamptz[]), cast(:expected_times as timestamptz[]),
        cast(:publish_times as timestamptz[]), cast(:are_answered as boolean[]), cast(:state_reasons as text[]),
        cast(:target_counts as int[])
    ) as r (organization_id, id, state, next_emit_at, expected_time, publish_time, is_answered, state_reason, targets)
    where s.organization_id = r.organization_id and s.id = r.id and r.targets = (
        select count(*) from slot_target t where t.organization_id = r.organization_id and t.slot_id = r.id
    )
""")

# Post jobs take an announcement only under a revision that they have not had.
_RAISE_REVISIONS = text("""
    update slot s set revision = s.revision + 1, update_time = :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    where s.organization_id = u.organization_id and s.id = u.id and s.state = 'SCHEDULED'
""")

_LOCK_QUEUES = text("""
    select q.organization_id, q.social_account_id, q.schedule_version, q.time_zone, q.max_posts_per_day, q.enabled,
        q.search_from, q.full_from, q.full_until, q.next_due_time, q.tzdata_version, q.slots_behind
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    join account_queue q
        on q.organization_id = u.organization_id and q.social_account_id = u.social_account_id
    order by q.organization_id, q.social_account_id
    for update of q
""")


_SAVE_FRONTIERS = text("""
    update account_queue q set
        search_from = r.search_from, full_from = r.full_from, full_until = r.full_until
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:search_from as timestamptz[]),
        cast(:full_from as timestamptz[]), cast(:full_until as timestamptz[])
    ) as r (organization_id, social_account_id, search_from, full_from, full_until)
    where q.organization_id = r.organization_id and q.social_account_id = r.social_account_id
""")


async def lock_queues(
    connection: AsyncConnection, keys: Collection[tuple[str, str]]
) -> dict[tuple[str, str], AccountQueue]:
    """The queues of the accounts with these organizations and ids; their rows are locked."""
    if not keys:
        return {}
    ordered = sorted(keys)
    names = {
        "organization_ids": [organization for organization, _ in ordered],
        "social_account_ids": [account for _, account in ordered],
    }
    result = await connection.execute(_LOCK_QUEUES, names)
    return {(row.organization_id, row.social_account_id): account_queue(row) for row in result}


async def lock_progress(connection: AsyncConnection, slots: Collection[tuple[str, str]]) -> list[Progress]:
    """Of the slots with these organizations and ids, as far as they exist; their rows are locked."""
    if not slots:
        return []
    ordered = sorted(slots)
    names = {"organization_ids": [organization for organization, _ in ordered], "ids": [slot for _, slot in ordered]}
    return _progress((await connection.execute(_LOCK_PROGRESS, names)).all())


async def lock_live_progress(connection: AsyncConnection, keys: Collection[tuple[str, str, str]]) -> list[Progress]:
    """Of the live slots with these organizations, drafts and accounts; their rows are locked."""
    if not keys:
        return []
    ordered = sorted(keys)
    names = {
        "organization_ids": [organization for organization, _, _ in ordered],
        "draft_ids": [draft for _, draft, _ in ordered],
        "social_account_ids": [account for _, _, account in ordered],
    }
    return _progress((await connection.execute(_LOCK_LIVE_PROGRESS, names)).all())


async def save_frontiers(connection: AsyncConnection, frontiers: Mapping[tuple[str, str], Frontier]) -> None:
    """By organization and account, whose rows are locked."""
    if not frontiers:
        return
    await connection.execute(
        _SAVE_FRONTIERS,
        {
            "organization_ids": [organization for organization, _ in frontiers],
            "social_account_ids": [account for _, account in frontiers],
            "search_from": [frontier.search_from for frontier in frontiers.values()],
            "full_from": [frontier.full_from for frontier in frontiers.values()],
            "full_until": [frontier.full_until for frontier in frontiers.values()],
        },
    )


async def save_progress(connection: AsyncConnection, slots: Sequence[Progress], *, now: datetime) -> None:
    told = [(slot, target, target.news) for slot in slots for target in slot.targets if target.news]
    await connection.execute(
        _SAVE_PROGRESS,
        {
            "organization_ids": [slot.organization_id for slot in slots],
            "ids": [slot.slot_id for slot in slots],
            "states": [slot.state for slot in slots],
            "next_emit_ats": [slot.next_emit_at for slot in slots],
            "expected_times": [slot.expected_time for slot in slots],
            "publish_times": [slot.publish_time for slot in slots],
            "are_answered": [slot.is_answered for slot in slots],
            "state_reasons": [slot.state_reason for slot in slots],
            "target_counts": [len(slot.targets) for slot in slots],
            "now": now,
            "target_organization_ids": [slot.organization_id for slot, _, _ in told],
            "target_slot_ids": [slot.slot_id for slot, _, _ in told],
            "of_another_slot": [target.of_another_slot for _, target, _ in told],
            "target_state_reasons": [news.state_reason for _, _, news in told],
            "channels": [news.channel for _, _, news in told],
            "destinations": [news.destination for _, _, news in told],
            "post_job_ids": [news.job_id for _, _, news in told],
            "job_states": [news.state for _, _, news in told],
            "job_versions": [news.version for _, _, news in told],
            "external_urls": [news.external_url for _, _, news in told],
            "error_messages": [news.error_message for _, _, news in told],
            "next_action_times": [news.next_action_time for _, _, news in told],
            "target_publish_times": [news.publish_time for _, _, news in told],
        },
    )


async def raise_revisions(connection: AsyncConnection, slots: Sequence[tuple[str, str]], *, now: datetime) -> None:
    """Of the slots with these organizations and ids, which are locked and not handed over yet."""
    names = {"organization_ids": [organization for organization, _ in slots], "ids": [slot for _, slot in slots]}
    await connection.execute(_RAISE_REVISIONS, names | {"now": now})


def _progress(rows: Sequence[Any]) -> list[Progress]:
    return [
        Progress._make(
            (
                *targets[0][:6],
                _SLOT_STATES[targets[0].state],
                *targets[0][7:12],
                tuple(
                    TargetProgress(channel, destination, _JOB_STATES[job_state], *rest)
                    for channel, destination, job_state, *rest in (row[12:] for row in targets)
                ),
            )
        )
        for targets in rows_by_slot(rows)
    ]
