"""The statements of settlement. Every post goes through them; they take batches and follow the rules in `dispatch`."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from queue_service.domain.job import TAKEN_BACK, JobState
from queue_service.domain.settlement import JobReport, SlotProgress, TargetProgress
from queue_service.domain.slot import SlotState, TakingBack
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Statement

_SLOT_STATES = {state.value: state for state in SlotState}
_TAKING_BACK = {each.value: each for each in TakingBack}
_JOB_STATES = {None: None} | {state.value: state for state in JobState}

# In the order of the fields of SlotProgress, then of TargetProgress.
_PROGRESS = """
    s.organization_id, s.id, s.draft_id, s.social_account_id, s.revision, s.schedule_time, s.state, s.next_emit_at,
    s.expected_time, s.publish_time, s.is_answered, s.state_reason, s.taking_back, t.channel, t.destination,
    t.job_state, t.job_version, t.next_action_time, t.publish_time, t.of_another_slot, t.state_reason, t.sent_now
"""
# Locks in the order of the keys. PostgreSQL returns the newest version of a row that it has waited for.
_LOCK_PROGRESS = Statement(f"""
    select {_PROGRESS}
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    join slot s on s.organization_id = u.organization_id and s.id = u.id
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.organization_id, s.id, t.channel, t.destination
    for update of s, t
""")
# "is true" leaves only indexes by draft: one by account would read all slots of the account.
_LOCK_LIVE_PROGRESS = Statement(f"""
    select {_PROGRESS}
    from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, draft_id, social_account_id)
    join slot s on s.organization_id = u.organization_id and s.draft_id = u.draft_id
        and (s.social_account_id = u.social_account_id) is true and s.is_live
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.organization_id, s.id, t.channel, t.destination
    for update of s, t
""")
# In the order of the keys, like all locks of slots.
_LOCK_SLOTS = Statement("""
    select count(*) from (
        select from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
        join slot s on s.organization_id = u.organization_id and s.id = u.id
        order by s.organization_id, s.id
        for update of s
    ) as locked
""")
# Stores what `settle` decides about a slot whose only target was sent. The slot's lock keeps targets from being added,
# and this snapshot is newer than the lock. "is true" leaves only the primary key to find the slot by.
_PUBLISH = Statement("""
    with settled as (
        update slot s set
            state = 'PUBLISHED', next_emit_at = null, expected_time = null, publish_time = r.publish_time,
            is_answered = true, state_reason = '', taking_back = '', update_time = :now
        from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:post_job_ids as text[]), cast(:job_versions as bigint[]),
            cast(:external_urls as text[]), cast(:publish_times as timestamptz[])
        ) as r (organization_id, id, channel, destination, post_job_id, job_version, external_url, publish_time)
        where s.organization_id = r.organization_id and s.id = r.id
            and (s.is_live and s.schedule_time <= :until) is true and (
                select bool_and(
                    t.channel = r.channel and t.destination = r.destination and t.job_version < r.job_version
                ) from slot_target t where t.organization_id = r.organization_id and t.slot_id = r.id
            )
        returning r.*
    )
    update slot_target t set
        post_job_id = r.post_job_id, job_state = 'PUBLISHED', job_version = r.job_version,
        external_url = r.external_url, error_message = '', state_reason = '', next_action_time = null,
        publish_time = r.publish_time, of_another_slot = false, sent_now = false
    from settled r
    where t.organization_id = r.organization_id and t.slot_id = r.id and t.channel = r.channel
        and t.destination = r.destination
    returning t.organization_id, t.slot_id
""")
# A target that was added to the slot while we waited for its lock is missing in what we have read. Such a slot keeps
# the state that it got with that target, and the next report settles it. This statement's snapshot is newer than the
# lock, so its count includes the target. `emission` grows with a target that came back and needs a command now, or the
# commands sent before, which the stream may still hold, would put off the new one.
_SAVE_PROGRESS = Statement("""
    with reported as (
        update slot_target t set
            post_job_id = r.post_job_id, job_state = r.job_state, job_version = r.job_version,
            external_url = r.external_url, error_message = r.error_message, state_reason = r.state_reason,
            next_action_time = r.next_action_time, publish_time = r.publish_time, of_another_slot = r.of_another_slot,
            sent_now = r.sent_now
        from unnest(
            cast(:target_organization_ids as text[]), cast(:target_slot_ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:post_job_ids as text[]), cast(:job_states as text[]),
            cast(:job_versions as bigint[]), cast(:external_urls as text[]), cast(:error_messages as text[]),
            cast(:target_state_reasons as text[]), cast(:next_action_times as timestamptz[]),
            cast(:target_publish_times as timestamptz[]), cast(:of_another_slot as boolean[]),
            cast(:sent_now as boolean[])
        ) as r (organization_id, slot_id, channel, destination, post_job_id, job_state, job_version, external_url,
            error_message, state_reason, next_action_time, publish_time, of_another_slot, sent_now)
        where t.organization_id = r.organization_id and t.slot_id = r.slot_id and t.channel = r.channel
            and t.destination = r.destination and t.job_version < r.job_version
    )
    update slot s set
        state = r.state, next_emit_at = r.next_emit_at,
        emission = s.emission + case when r.next_emit_at = :now and s.next_emit_at <> :now then 1 else 0 end,
        expected_time = r.expected_time, publish_time = r.publish_time, is_answered = r.is_answered,
        state_reason = r.state_reason, taking_back = r.taking_back, revision = r.revision, update_time = :now
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:states as text[]),
        cast(:next_emit_ats as timestamptz[]), cast(:expected_times as timestamptz[]),
        cast(:publish_times as timestamptz[]), cast(:are_answered as boolean[]), cast(:state_reasons as text[]),
        cast(:taking_back as text[]), cast(:revisions as bigint[]), cast(:target_counts as int[])
    ) as r (organization_id, id, state, next_emit_at, expected_time, publish_time, is_answered, state_reason,
        taking_back, revision, targets)
    where s.organization_id = r.organization_id and s.id = r.id and r.targets = (
        select count(*) from slot_target t where t.organization_id = r.organization_id and t.slot_id = r.id
    )
""")

# Raised because a post job ignores announcements under a revision that it has seen already.
_RAISE_REVISIONS = Statement("""
    update slot s set revision = s.revision + 1, update_time = :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    where s.organization_id = u.organization_id and s.id = u.id and s.state = 'SCHEDULED'
""")

# The jobs have the time that is announced again; their versions stay, because older reports must not count. A slot that
# gained a target while we waited for its lock has not returned; see _SAVE_PROGRESS. Accounts are few, so their rows are
# looked up by key.
_FORGET = Statement("""
    with returned as materialized (
        select s.organization_id, s.id, s.social_account_id, s.schedule_time, coalesce(s.tzdata_version, '') as release
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:revisions as bigint[]))
            as u (organization_id, id, revision)
        cross join lateral (
            select * from slot s where s.organization_id = u.organization_id and s.id = u.id and s.state = 'SCHEDULED'
                and s.revision = u.revision offset 0
        ) as s
    ),
    due as (
        update account_queue q set
            next_due_time = least(q.next_due_time, first.schedule_time),
            slots_behind = q.slots_behind or (q.time_zone <> '' and q.tzdata_version > first.release)
        from (
            select organization_id, social_account_id, min(schedule_time) as schedule_time, min(release) as release
            from returned group by 1, 2 limit :slots
        ) as first
        where q.organization_id = first.organization_id and q.social_account_id = first.social_account_id
    )
    update slot_target t set
        job_state = 'SCHEDULED', state_reason = '', error_message = '', external_url = '', next_action_time = null
    from (select organization_id, id from returned limit :slots) as r
    where t.organization_id = r.organization_id and t.slot_id = r.id and t.job_state = 'CANCELED'
        and t.state_reason = :taken_back and not t.of_another_slot
""")


async def lock_slots(tx: Transaction, slots: Collection[tuple[str, str]]) -> None:
    """Locks the slots, given by organization and id."""
    if slots:
        await tx.fetch_value(_LOCK_SLOTS, _names(slots))


async def publish(
    tx: Transaction, reports: Sequence[JobReport], *, until: datetime, now: datetime
) -> set[tuple[str, str]]:
    """Settles locked slots by plain publications of their only targets, and returns their keys.

    Leaves out a slot that is not live, is due after `until`, or has another target or a newer report.
    """
    if not reports:
        return set()
    settled = await tx.fetch(
        _PUBLISH,
        {
            "organization_ids": [report.organization_id for report in reports],
            "ids": [report.slot_id for report in reports],
            "channels": [report.channel for report in reports],
            "destinations": [report.destination for report in reports],
            "post_job_ids": [report.job_id for report in reports],
            "job_versions": [report.version for report in reports],
            "external_urls": [report.external_url for report in reports],
            "publish_times": [report.publish_time for report in reports],
            "until": until,
            "now": now,
        },
    )
    return {(organization, slot) for organization, slot in settled}


async def lock_progress(tx: Transaction, slots: Collection[tuple[str, str]]) -> list[SlotProgress]:
    """Locks and reads those of the slots, given by organization and id, that exist."""
    if not slots:
        return []
    return _progress(await tx.fetch(_LOCK_PROGRESS, _names(slots)))


async def lock_live_progress(tx: Transaction, keys: Collection[tuple[str, str, str]]) -> list[SlotProgress]:
    """Locks and reads live slots, given by organization, draft and account."""
    if not keys:
        return []
    ordered = sorted(keys)
    names = {
        "organization_ids": [organization for organization, _, _ in ordered],
        "draft_ids": [draft for _, draft, _ in ordered],
        "social_account_ids": [account for _, _, account in ordered],
    }
    return _progress(await tx.fetch(_LOCK_LIVE_PROGRESS, names))


async def save_progress(tx: Transaction, slots: Sequence[SlotProgress], *, now: datetime) -> None:
    """Saves locked slots, and those of their targets that have a new report."""
    reported = [(slot, target, target.report) for slot in slots for target in slot.targets if target.report]
    await tx.execute(
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
            "taking_back": [slot.taking_back for slot in slots],
            "revisions": [slot.revision for slot in slots],
            "target_counts": [len(slot.targets) for slot in slots],
            "now": now,
            "target_organization_ids": [slot.organization_id for slot, _, _ in reported],
            "target_slot_ids": [slot.slot_id for slot, _, _ in reported],
            "of_another_slot": [target.of_another_slot for _, target, _ in reported],
            "sent_now": [target.sent_now for _, target, _ in reported],
            "target_state_reasons": [report.state_reason for _, _, report in reported],
            "channels": [report.channel for _, _, report in reported],
            "destinations": [report.destination for _, _, report in reported],
            "post_job_ids": [report.job_id for _, _, report in reported],
            "job_states": [report.state for _, _, report in reported],
            "job_versions": [report.version for _, _, report in reported],
            "external_urls": [report.external_url for _, _, report in reported],
            "error_messages": [report.error_message for _, _, report in reported],
            "next_action_times": [report.next_action_time for _, _, report in reported],
            "target_publish_times": [report.publish_time for _, _, report in reported],
        },
    )


async def forget_jobs(tx: Transaction, slots: Sequence[SlotProgress]) -> None:
    """Forgets the jobs of saved slots that have returned, and lets dispatch find them. The accounts are locked."""
    names = {
        "organization_ids": [slot.organization_id for slot in slots],
        "ids": [slot.slot_id for slot in slots],
        "revisions": [slot.revision for slot in slots],
        "slots": len(slots),
        "taken_back": TAKEN_BACK,
    }
    await tx.execute(_FORGET, names)


async def raise_revisions(tx: Transaction, slots: Sequence[tuple[str, str]], *, now: datetime) -> None:
    """Raises the revisions of locked slots, given by organization and id, if they are still SCHEDULED."""
    await tx.execute(_RAISE_REVISIONS, _names(slots) | {"now": now})


def _names(slots: Collection[tuple[str, str]]) -> dict[str, object]:
    ordered = sorted(slots)
    return {"organization_ids": [organization for organization, _ in ordered], "ids": [slot for _, slot in ordered]}


def _progress(rows: Sequence[Row]) -> list[SlotProgress]:
    """Reads rows that are ordered by slot."""
    return [_slot_progress(list(targets)) for _, targets in groupby(rows, itemgetter(0, 1))]


def _slot_progress(rows: Sequence[Row]) -> SlotProgress:
    slot = rows[0]
    targets = tuple(
        TargetProgress(
            row[13], row[14], _JOB_STATES[row[15]], row[16], row[17], row[18], row[19], row[20], None, row[21]
        )
        for row in rows
    )
    return SlotProgress._make((*slot[:6], _SLOT_STATES[slot[6]], *slot[7:12], _TAKING_BACK[slot[12]], targets))
