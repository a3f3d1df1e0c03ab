"""The two statements that every post passes: claim with intent, and settle. One round trip each, whatever the batch.

Rules that both obey, each one measured: rows are found by key from an unnested array (no join between two CTEs, which
is quadratic in the batch); the claim waits for no lock (SKIP LOCKED), so it cannot deadlock; what is decided is decided
on the locked, newest version of job and gate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.claim import Claimed, Command, Judged, Verdict
from publisher_service.domain.post_job import JobState, PostJob, Reason
from publisher_service.domain.settlement import Settlement

_CLAIM = text("""
    with taken as materialized (
        select
            c.ordinal,
            c.slot_id as command_slot_id,
            c.slot_revision as command_slot_revision,
            c.schedule_time as command_time,
            c.not_after as command_not_after,
            c.content_revision as wanted_revision,
            c.max_attempts as command_max_attempts,
            c.traceparent as command_traceparent,
            j.organization_id, j.id, j.draft_id, j.social_account_id, j.state, j.version, j.run, j.slot_id,
            j.slot_revision, j.next_action_time, j.attempts, j.fence, j.withdrawn_below, j.target_month, j.create_time,
            j.state in ('FAILED', 'MISSED', 'CANCELED') as new_run,
            g.connected, g.open_job_id
        from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:social_account_ids as text[]),
            cast(:slot_ids as text[]), cast(:slot_revisions as bigint[]), cast(:schedule_times as timestamptz[]),
            cast(:not_afters as timestamptz[]), cast(:content_revisions as bigint[]), cast(:max_attempts as integer[]),
            cast(:traceparents as text[])
        ) with ordinality as c (organization_id, id, social_account_id, slot_id, slot_revision, schedule_time,
            not_after, content_revision, max_attempts, traceparent, ordinal)
        join post_job j on j.organization_id = c.organization_id and j.id = c.id
        -- Lateral, so that both columns always are index conditions: as a join the planner may look up one of them.
        cross join lateral (
            select gate.connected, gate.open_job_id from account_gate gate
            where gate.organization_id = c.organization_id and gate.social_account_id = c.social_account_id
            for update skip locked
        ) g
        for update of j skip locked
    ),
    judged as materialized (
        select
            t.*, k.revision as revision, k.content as content, k.content_digest as content_digest,
            s.provider, s.external_account_id, s.credentials,
            case
                when (t.command_slot_id collate "C", t.command_slot_revision)
                    < (t.slot_id collate "C", t.slot_revision) then 'STALE'
                when t.state in ('PUBLISHED', 'NEEDS_ATTENTION') then 'ENDED'
                when t.new_run and (t.command_slot_id, t.command_slot_revision) = (t.slot_id, t.slot_revision)
                    then 'ENDED'
                when t.state in ('SENDING', 'UNKNOWN') then 'OPEN'
                when t.state = 'WAITING' and t.next_action_time > :now then 'EARLY'
                when t.command_not_after < :now then 'MISSED'
                when k.version is null or k.version = 0 or k.revision < t.wanted_revision then 'CONTENT_PENDING'
                when k.revision < t.withdrawn_below then 'WITHDRAWN'
                when t.id <> all (k.post_job_ids) then 'REMOVED'
                when not k.approved then 'NOT_APPROVED'
                when not t.connected or s.id is null then 'ACCOUNT_NOT_CONNECTED'
                when t.open_job_id is not null then 'ACCOUNT_BUSY'
                else 'CLAIMED'
            end as verdict
        from taken t
        left join content k on k.organization_id = t.organization_id and k.draft_id = t.draft_id
        left join social_account s on s.organization_id = t.organization_id and s.id = t.social_account_id
    ),
    claimed as (
        update post_job j set
            state = 'SENDING', state_reason = '', version = j.version + 1, fence = j.fence + 1,
            run = case when v.new_run then j.run + 1 else j.run end,
            attempts = case when v.new_run then 1 else j.attempts + 1 end,
            slot_id = v.command_slot_id, slot_revision = v.command_slot_revision, schedule_time = v.command_time,
            not_after = v.command_not_after, max_attempts = v.command_max_attempts,
            traceparent = v.command_traceparent, content_revision = v.revision, next_action_time = :lease_end,
            error_reason = '', error_message = '', last_attempt_time = :now, update_time = :now
        from judged v
        where v.verdict = 'CLAIMED' and j.organization_id = v.organization_id and j.id = v.id
            and j.state not in ('SENDING', 'UNKNOWN', 'PUBLISHED')
    ),
    opened as (
        insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
            content_digest, start_time, external_id, error_reason, error_message)
        select v.organization_id, v.id,
            case when v.new_run then v.run + 1 else v.run end,
            case when v.new_run then 1 else v.attempts + 1 end,
            v.fence + 1, 'SENDING',
            v.id || '-' || case when v.new_run then v.run + 1 else v.run end,
            v.revision, v.content_digest, :now, '', '', ''
        from judged v where v.verdict = 'CLAIMED'
    ),
    gated as (
        update account_gate g set open_job_id = v.id
        from judged v
        where v.verdict = 'CLAIMED' and g.organization_id = v.organization_id
            and g.social_account_id = v.social_account_id
    )
    select * from judged
""")

_SETTLE = text("""
    with result as materialized (
        select * from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]),
            cast(:social_account_ids as text[]), cast(:states as text[]), cast(:state_reasons as text[]),
            cast(:next_action_times as timestamptz[]), cast(:attempts as integer[]),
            cast(:publish_times as timestamptz[]), cast(:external_ids as text[]), cast(:external_urls as text[]),
            cast(:evidence_kinds as text[]), cast(:error_reasons as text[]), cast(:error_messages as text[]),
            cast(:end_times as timestamptz[]), cast(:attempt_states as text[]),
            cast(:attempt_error_reasons as text[]), cast(:attempt_error_messages as text[]),
            cast(:activity_ids as text[]), cast(:outcomes as text[]),
            cast(:event_ids as text[]), cast(:event_subjects as text[]), cast(:event_payloads as bytea[])
        ) as r (organization_id, id, fence, social_account_id, state, state_reason, next_action_time, attempts,
            publish_time, external_id, external_url, evidence_kind, error_reason, error_message, end_time,
            attempt_state, attempt_error_reason, attempt_error_message, activity_id, outcome,
            event_id, event_subject, event_payload)
    ),
    settled as (
        update post_job j set
            state = r.state, state_reason = r.state_reason, version = j.version + 1,
            next_action_time = r.next_action_time, attempts = r.attempts, publish_time = r.publish_time,
            external_id = r.external_id, external_url = r.external_url, evidence_kind = r.evidence_kind,
            error_reason = r.error_reason, error_message = r.error_message, last_attempt_time = r.end_time,
            update_time = :now
        from result r
        -- "is true" keeps the planner from looking for what is SENDING by an index on the state, and joining that.
        where j.organization_id = r.organization_id and j.id = r.id and j.fence = r.fence
            and (j.state = 'SENDING') is true
        returning r.*
    ),
    closed as (
        update attempt a set
            state = s.attempt_state, end_time = s.end_time, external_id = s.external_id,
            error_reason = s.attempt_error_reason, error_message = s.attempt_error_message
        from settled s
        where a.organization_id = s.organization_id and a.post_job_id = s.id and a.fence = s.fence
    ),
    released as (
        update account_gate g set open_job_id = null
        from settled s
        where g.organization_id = s.organization_id and g.social_account_id = s.social_account_id
            and g.open_job_id = s.id
    ),
    logged as (
        insert into activity (organization_id, social_account_id, id, post_job_id, action, outcome, create_time)
        select organization_id, social_account_id, activity_id, id, 'POST', outcome, end_time from settled
        where outcome <> ''
    )
    insert into outbox (event_id, subject, payload, create_time)
    select event_id, event_subject, event_payload, :now from settled
    returning position, event_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleRow:
    """One settlement with what is stored beside it."""

    settlement: Settlement
    activity_id: str
    outcome: str
    event_id: str
    event_subject: str
    event_payload: bytes


async def claim(
    connection: AsyncConnection, commands: Sequence[Command], *, now: datetime, lease_end: datetime
) -> dict[int, Judged]:
    """What was found, by the index of the command. A command whose job is not there, or is locked, is left out."""
    result = await connection.execute(
        _CLAIM,
        {
            "organization_ids": [each.organization_id for each in commands],
            "ids": [each.post_job_id for each in commands],
            "social_account_ids": [each.target.social_account_id for each in commands],
            "slot_ids": [each.slot_id for each in commands],
            "slot_revisions": [each.slot_revision for each in commands],
            "schedule_times": [each.schedule_time for each in commands],
            "not_afters": [each.not_after for each in commands],
            "content_revisions": [each.content_revision for each in commands],
            "max_attempts": [each.max_attempts for each in commands],
            "traceparents": [each.traceparent for each in commands],
            "now": now,
            "lease_end": lease_end,
        },
    )
    return {row.ordinal - 1: _judged(row, commands[row.ordinal - 1], now, lease_end) for row in result}


async def settle(connection: AsyncConnection, rows: Sequence[SettleRow], *, now: datetime) -> Mapping[str, int]:
    """Outbox positions by event id. A row that is absent was not settled: its try is no longer the job's open one."""
    jobs = [row.settlement.job for row in rows]
    result = await connection.execute(
        _SETTLE,
        {
            "organization_ids": [job.organization_id for job in jobs],
            "ids": [job.id for job in jobs],
            "fences": [job.fence for job in jobs],
            "social_account_ids": [job.target.social_account_id for job in jobs],
            "states": [job.state.value for job in jobs],
            "state_reasons": [job.state_reason.value for job in jobs],
            "next_action_times": [job.next_action_time for job in jobs],
            "attempts": [job.attempts for job in jobs],
            "publish_times": [job.publish_time for job in jobs],
            "external_ids": [job.external_id for job in jobs],
            "external_urls": [job.external_url for job in jobs],
            "evidence_kinds": [job.evidence_kind for job in jobs],
            "error_reasons": [job.error_reason for job in jobs],
            "error_messages": [job.error_message for job in jobs],
            "end_times": [job.last_attempt_time for job in jobs],
            "attempt_states": [row.settlement.attempt_state.value for row in rows],
            "attempt_error_reasons": [row.settlement.error_reason for row in rows],
            "attempt_error_messages": [row.settlement.error_message for row in rows],
            "activity_ids": [row.activity_id for row in rows],
            "outcomes": [row.outcome for row in rows],
            "event_ids": [row.event_id for row in rows],
            "event_subjects": [row.event_subject for row in rows],
            "event_payloads": [row.event_payload for row in rows],
            "now": now,
        },
    )
    return {event_id: position for position, event_id in result}


def _judged(row: Row[Any], command: Command, now: datetime, lease_end: datetime) -> Judged:
    verdict = Verdict(row.verdict)
    if verdict is not Verdict.CLAIMED:
        return Judged(
            verdict=verdict, next_action_time=row.next_action_time, organization_id=row.organization_id, id=row.id
        )
    job = PostJob(
        organization_id=row.organization_id,
        id=row.id,
        draft_id=row.draft_id,
        target=command.target,
        state=JobState.SENDING,
        state_reason=Reason.NONE,
        version=row.version + 1,
        run=row.run + 1 if row.new_run else row.run,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        next_action_time=lease_end,
        max_attempts=command.max_attempts,
        attempts=1 if row.new_run else row.attempts + 1,
        fence=row.fence + 1,
        content_revision=row.revision,
        withdrawn_below=row.withdrawn_below,
        last_attempt_time=now,
        target_month=row.target_month,
        traceparent=command.traceparent,
        create_time=row.create_time,
        update_time=now,
    )
    claimed = Claimed(
        job=job,
        provider=row.provider,
        external_account_id=row.external_account_id,
        credentials=row.credentials,
        content=row.content,
        content_digest=row.content_digest,
    )
    return Judged(
        verdict=verdict, next_action_time=None, organization_id=job.organization_id, id=job.id, claimed=claimed
    )
