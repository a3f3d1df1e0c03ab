"""The statements of settlement. Every post goes through them; they take batches and follow the rules in `dispatch`."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from queue_service.domain.job import JobState
from queue_service.domain.settlement import SlotProgress, TargetProgress
from queue_service.domain.slot import SlotState
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Statement

_SLOT_STATES = {state.value: state for state in SlotState}
_JOB_STATES = {None: None} | {state.value: state for state in JobState}

# In the order of the fields of SlotProgress, then of TargetProgress.
_PROGRESS = """
    s.organization_id, s.id, s.draft_id, s.social_account_id, s.revision, s.schedule_time, s.state, s.next_emit_at,
    s.expected_time, s.publish_time, s.is_answered, s.state_reason, t.channel, t.destination, t.job_state,
    t.job_version, t.next_action_time, t.publish_time, t.of_another_slot
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
# A target that was added to the slot while we waited for its lock is missing in what we have read. Such a slot keeps
# the state that it got with that target, and the next report settles it. This statement's snapshot is newer than the
# lock, so its count includes the target. `emission` grows with a target that came back and needs a command now, or the
# commands sent before, which the stream may still hold, would put off the new one.
_SAVE = """
    with reported as (
        update slot_target t set
            post_job_id = r.post_job_id, job_state = r.job_state, job_version = r.job_version,
            external_url = r.external_url, error_message = r.error_message, state_reason = r.state_reason,
            next_action_time = r.next_action_time, publish_time = r.publish_time, of_another_slot = r.of_another_slot
        from {reports}
        where t.organization_id = r.organization_id and t.slot_id = r.slot_id and t.channel = r.channel
            and t.destination = r.destination and t.job_version < r.job_version
    )
    update slot s set
        state = r.state, next_emit_at = r.next_emit_at,
        emission = s.emission + case when r.next_emit_at = :now and s.next_emit_at <> :now then 1 else 0 end,
        expected_time = r.expected_time, publish_time = r.publish_time, is_answered = r.is_answered,
        state_reason = r.state_reason, update_time = :now
    from {slots}
    where s.organization_id = r.organization_id and s.id = r.id and r.targets = (
        select count(*) from slot_target t where t.organization_id = r.organization_id and t.slot_id = r.id
    )
"""
_SAVE_PROGRESS = Statement(
    _SAVE.format(
        reports="""unnest(
            cast(:target_organization_ids as text[]), cast(:target_slot_ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:post_job_ids as text[]), cast(:job_states as text[]),
            cast(:job_versions as bigint[]), cast(:external_urls as text[]), cast(:error_messages as text[]),
            cast(:target_state_reasons as text[]), cast(:next_action_times as timestamptz[]),
            cast(:target_publish_times as timestamptz[]), cast(:of_another_slot as boolean[])
        ) as r (organization_id, slot_id, channel, destination, post_job_id, job_state, job_version, external_url,
            error_message, state_reason, next_action_time, publish_time, of_another_slot)""",
        slots="""unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:states as text[]),
            cast(:next_emit_ats as timestamptz[]), cast(:expected_times as timestamptz[]),
            cast(:publish_times as timestamptz[]), cast(:are_answered as boolean[]), cast(:state_reasons as text[]),
            cast(:target_counts as int[])
        ) as r (organization_id, id, state, next_emit_at, expected_time, publish_time, is_answered, state_reason,
            targets)""",
    )
)
# Of a slot that has sent its only target, most columns are known: each element of an array costs the process 0.3 us.
_SAVE_PUBLISHED = Statement(
    _SAVE.format(
        reports="""(
            select each.*, 'PUBLISHED', '', '', cast(null as timestamptz), false
            from unnest(
                cast(:organization_ids as text[]), cast(:ids as text[]), cast(:channels as text[]),
                cast(:destinations as text[]), cast(:post_job_ids as text[]), cast(:job_versions as bigint[]),
                cast(:external_urls as text[]), cast(:publish_times as timestamptz[])
            ) as each
        ) as r (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url, publish_time,
            job_state, error_message, state_reason, next_action_time, of_another_slot)""",
        slots="""(
            select each.*, 'PUBLISHED', cast(null as timestamptz), cast(null as timestamptz), true, '', 1
            from unnest(
                cast(:organization_ids as text[]), cast(:ids as text[]), cast(:publish_times as timestamptz[])
            ) as each
        ) as r (organization_id, id, publish_time, state, next_emit_at, expected_time, is_answered, state_reason,
            targets)""",
    )
)

# Raised because a post job ignores announcements under a revision that it has seen already.
_RAISE_REVISIONS = Statement("""
    update slot s set revision = s.revision + 1, update_time = :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    where s.organization_id = u.organization_id and s.id = u.id and s.state = 'SCHEDULED'
""")


async def lock_progress(tx: Transaction, slots: Collection[tuple[str, str]]) -> list[SlotProgress]:
    """Locks and reads those of the slots, given by organization and id, that exist."""
    if not slots:
        return []
    ordered = sorted(slots)
    names = {"organization_ids": [organization for organization, _ in ordered], "ids": [slot for _, slot in ordered]}
    return _progress(await tx.fetch(_LOCK_PROGRESS, names))


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
    published = [slot for slot in slots if _is_plainly_published(slot)]
    if published:
        await _save_published(tx, published, now)
    if len(published) < len(slots):
        keys = {slot.key for slot in published}
        await _save_others(tx, [slot for slot in slots if slot.key not in keys], now)


def _is_plainly_published(slot: SlotProgress) -> bool:
    """Returns whether the slot has nothing but a publication of its only target to be saved."""
    target = slot.targets[0]
    report = target.report
    return (
        report is not None
        and len(slot.targets) == 1
        and report.state is JobState.PUBLISHED
        and slot.state is SlotState.PUBLISHED
        and not (report.error_message or report.state_reason or report.next_action_time or target.of_another_slot)
        and report.publish_time is not None
        and report.publish_time == slot.publish_time
    )


async def _save_published(tx: Transaction, slots: Sequence[SlotProgress], now: datetime) -> None:
    reports = [report for slot in slots if (report := slot.targets[0].report)]
    await tx.execute(
        _SAVE_PUBLISHED,
        {
            "organization_ids": [slot.organization_id for slot in slots],
            "ids": [slot.slot_id for slot in slots],
            "publish_times": [slot.publish_time for slot in slots],
            "channels": [report.channel for report in reports],
            "destinations": [report.destination for report in reports],
            "post_job_ids": [report.job_id for report in reports],
            "job_versions": [report.version for report in reports],
            "external_urls": [report.external_url for report in reports],
            "now": now,
        },
    )


async def _save_others(tx: Transaction, slots: Sequence[SlotProgress], now: datetime) -> None:
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
            "target_counts": [len(slot.targets) for slot in slots],
            "now": now,
            "target_organization_ids": [slot.organization_id for slot, _, _ in reported],
            "target_slot_ids": [slot.slot_id for slot, _, _ in reported],
            "of_another_slot": [target.of_another_slot for _, target, _ in reported],
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


async def raise_revisions(tx: Transaction, slots: Sequence[tuple[str, str]], *, now: datetime) -> None:
    """Raises the revisions of locked slots, given by organization and id, if they are still SCHEDULED."""
    names = {"organization_ids": [organization for organization, _ in slots], "ids": [slot for _, slot in slots]}
    await tx.execute(_RAISE_REVISIONS, names | {"now": now})


def _progress(rows: Sequence[Row]) -> list[SlotProgress]:
    """Reads rows that are ordered by slot."""
    return [_slot_progress(list(targets)) for _, targets in groupby(rows, itemgetter(0, 1))]


def _slot_progress(rows: Sequence[Row]) -> SlotProgress:
    slot = rows[0]
    targets = tuple(
        TargetProgress(row[12], row[13], _JOB_STATES[row[14]], row[15], row[16], row[17], row[18]) for row in rows
    )
    return SlotProgress._make((*slot[:6], _SLOT_STATES[slot[6]], *slot[7:12], targets))
