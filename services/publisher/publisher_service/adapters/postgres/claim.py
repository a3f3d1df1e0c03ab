"""The claim: one statement decides which commands of a batch may be sent, and records the attempts to send them.

Its rules, each one measured: it finds rows by key from an unnested array, because a join of two CTEs is quadratic in
the batch; it waits for no lock (SKIP LOCKED), so it cannot deadlock; it decides on the locked, newest version of job
and gate. It returns what it wrote, so nothing is computed a second time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.claim import Claimed, Command, Judged, Lane, Verdict
from publisher_service.domain.post_job import JobState, PostJob

_CLAIM = text("""
    with taken as materialized (
        select
            c.ordinal,
            c.slot_sequence as command_slot_sequence,
            c.slot_id as command_slot_id,
            c.slot_revision as command_slot_revision,
            c.schedule_time as command_time,
            c.not_after as command_not_after,
            c.content_revision as wanted_revision,
            c.max_attempts as command_max_attempts,
            c.traceparent as command_traceparent,
            c.from_line,
            j.organization_id, j.id, j.draft_id, j.social_account_id, j.state, j.state_reason, j.version, j.run,
            j.slot_sequence, j.slot_id, j.slot_revision, j.next_action_time, j.attempts, j.fence, j.in_doubt,
            j.content_revision as sent_revision, j.withdrawn_below, j.create_time,
            -- The run has ended: the command begins the next one. What a job becomes is computed here and nowhere else.
            e.ended, r.next_run, r.spent,
            r.spent + 1 as next_attempt,
            j.id || '-' || r.next_run as next_key,
            j.version + 1 as next_version,
            j.fence + 1 as next_fence,
            coalesce(nullif(c.target_month, ''), j.target_month) as next_month,
            (j.state_reason, j.slot_id, j.slot_revision, j.not_after)
                is not distinct from ('IN_LINE', c.slot_id, c.slot_revision, c.not_after) as stands_in_line,
            g.connected, g.open_job_id, g.lined, g.resume_time
        from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:social_account_ids as text[]),
            cast(:slot_sequences as bigint[]), cast(:slot_ids as text[]), cast(:slot_revisions as bigint[]),
            cast(:schedule_times as timestamptz[]), cast(:not_afters as timestamptz[]),
            cast(:content_revisions as bigint[]), cast(:max_attempts as integer[]), cast(:traceparents as text[]),
            cast(:target_months as text[]), cast(:from_lines as boolean[])
        ) with ordinality as c (organization_id, id, social_account_id, slot_sequence, slot_id, slot_revision,
            schedule_time, not_after, content_revision, max_attempts, traceparent, target_month, from_line, ordinal)
        join post_job j on j.organization_id = c.organization_id and j.id = c.id
        cross join lateral (select j.state in ('FAILED', 'MISSED', 'CANCELED') as ended) e
        cross join lateral (
            select case when e.ended then j.run + 1 else j.run end as next_run,
                case when e.ended then 0 else j.attempts end as spent
        ) r
        -- Lateral, so that both columns always are index conditions: for a join the planner may use one of them.
        cross join lateral (
            select gate.connected, gate.open_job_id, gate.lined, gate.resume_time from account_gate gate
            where gate.organization_id = c.organization_id and gate.social_account_id = c.social_account_id
            for no key update skip locked
        ) g
        for update of j skip locked
    ),
    looked_at as materialized (
        select
            t.*, b.revision, b.content, b.content_digest, s.provider, s.external_account_id, s.credentials,
            coalesce((cast(:rooms as integer[]))[array_position(cast(:providers as text[]), s.provider)], 0) as room,
            (cast(:lease_ends as timestamptz[]))[array_position(cast(:providers as text[]), s.provider)] as lease_end,
            case
                when t.state not in ('PENDING', 'SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED', 'UNKNOWN',
                    'PUBLISHED', 'FAILED', 'MISSED', 'CANCELED', 'NEEDS_ATTENTION') then 'UNREADABLE'
                when (t.command_slot_sequence, t.command_slot_id collate "C", t.command_slot_revision)
                    < (t.slot_sequence, t.slot_id collate "C", t.slot_revision) then 'STALE'
                when t.state in ('PUBLISHED', 'NEEDS_ATTENTION') then 'ENDED'
                when t.ended and (t.command_slot_id, t.command_slot_revision) = (t.slot_id, t.slot_revision)
                    then 'ENDED'
                when t.state in ('SENDING', 'UNKNOWN') then 'OPEN'
                when t.state = 'WAITING' and t.state_reason <> 'CONTENT_PENDING' and t.next_action_time > :now
                    then 'EARLY'
                when t.command_not_after < :now then 'MISSED'
                when t.spent >= t.command_max_attempts then 'EXHAUSTED'
                when not t.in_doubt and (k.version is null or k.version = 0 or k.revision < t.wanted_revision)
                    then 'CONTENT_PENDING'
                when b.revision < t.withdrawn_below then 'WITHDRAWN'
                when t.id <> all (k.post_job_ids) then 'REMOVED'
                when b.content is null then 'CONTENT_LOST'
                -- A resend was approved when it was sent first; only its withdrawal forbids it.
                when not k.approved and b.revision = k.revision then 'NOT_APPROVED'
                when not t.connected or s.id is null then 'ACCOUNT_NOT_CONNECTED'
                when t.open_job_id is not null or t.resume_time > :now or (t.lined and not t.from_line)
                    then 'ACCOUNT_BUSY'
                else 'CLAIMED'
            end as opinion
        from taken t
        left join content k on k.organization_id = t.organization_id and k.draft_id = t.draft_id
        left join social_account s on s.organization_id = t.organization_id and s.id = t.social_account_id
        left join kept_content kept on t.in_doubt and kept.organization_id = t.organization_id
            and kept.post_job_id = t.id and kept.revision = t.sent_revision
        -- A run in doubt sends the very bytes that may be out already, even if the draft has changed since. If a newer
        -- revision has the same bytes, that revision is sent.
        cross join lateral (
            select
                case when i.newest then k.revision else t.sent_revision end as revision,
                case when i.newest then k.content else kept.content end as content,
                case when i.newest then k.content_digest else kept.content_digest end as content_digest
            from (
                select coalesce(
                    not t.in_doubt or k.revision = t.sent_revision or k.content_digest = kept.content_digest, false
                )
            ) as i (newest)
        ) b
    ),
    -- One post of an account at a time, the earliest first, and no more of a provider than there is room for.
    in_turn as materialized (
        select l.*,
            case when l.opinion = 'CLAIMED' and row_number() over (
                partition by l.organization_id, l.social_account_id, l.opinion order by l.command_time, l.id
            ) > 1 then 'ACCOUNT_BUSY' else l.opinion end as opinion_in_turn
        from looked_at l
    ),
    judged as materialized (
        select i.*,
            case when i.opinion_in_turn = 'CLAIMED' and row_number() over (
                partition by i.provider, i.opinion_in_turn order by i.ordinal
            ) > i.room then 'PROVIDER_BUSY' else i.opinion_in_turn end as verdict
        from in_turn i
    ),
    claimed as (
        update post_job j set
            state = 'SENDING', state_reason = '', version = v.next_version, fence = v.next_fence,
            run = v.next_run, attempts = v.next_attempt, target_month = v.next_month,
            slot_sequence = v.command_slot_sequence, slot_id = v.command_slot_id,
            slot_revision = v.command_slot_revision, schedule_time = v.command_time,
            not_after = v.command_not_after, max_attempts = v.command_max_attempts,
            traceparent = v.command_traceparent, content_revision = v.revision,
            wanted_revision = v.wanted_revision, next_action_time = v.lease_end,
            error_reason = '', error_message = '', last_attempt_time = :now, update_time = :now
        from judged v
        where v.verdict = 'CLAIMED' and j.organization_id = v.organization_id and j.id = v.id
            and j.state not in ('SENDING', 'UNKNOWN', 'PUBLISHED')
    ),
    opened as (
        insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
            content_digest, start_time, external_id, error_reason, error_message, sender)
        select v.organization_id, v.id, v.next_run, v.next_attempt, v.next_fence, 'SENDING', v.next_key,
            v.revision, v.content_digest, :now, '', '', '', :sender
        from judged v where v.verdict = 'CLAIMED'
    ),
    lined as (
        update post_job j set
            state = 'READY', state_reason = 'IN_LINE', version = v.next_version, run = v.next_run, attempts = v.spent,
            target_month = v.next_month, slot_sequence = v.command_slot_sequence, slot_id = v.command_slot_id,
            slot_revision = v.command_slot_revision, schedule_time = v.command_time,
            not_after = v.command_not_after, max_attempts = v.command_max_attempts,
            traceparent = v.command_traceparent, next_action_time = v.command_not_after,
            wanted_revision = v.wanted_revision,
            error_reason = case when v.ended then '' else j.error_reason end,
            error_message = case when v.ended then '' else j.error_message end, update_time = :now
        from judged v
        where v.verdict in ('ACCOUNT_BUSY', 'PROVIDER_BUSY') and j.organization_id = v.organization_id and j.id = v.id
            and j.state not in ('SENDING', 'UNKNOWN', 'PUBLISHED') and not v.stands_in_line
    ),
    gates as materialized (
        select organization_id, social_account_id, min(id) filter (where verdict = 'CLAIMED') as claimed_id,
            bool_or(verdict <> 'CLAIMED') as some_wait, max(provider) as provider
        from judged where verdict in ('CLAIMED', 'ACCOUNT_BUSY', 'PROVIDER_BUSY', 'ACCOUNT_NOT_CONNECTED')
        group by organization_id, social_account_id
    ),
    -- While a post is open, its settlement wakes the line.
    gated as (
        update account_gate g set
            provider = coalesce(w.provider, g.provider),
            open_job_id = coalesce(w.claimed_id, g.open_job_id),
            lined = g.lined or w.some_wait,
            wake_time = case
                when w.claimed_id is null and g.open_job_id is null and g.connected and (g.lined or w.some_wait)
                    then greatest(:now, g.resume_time)
            end
        from gates w
        where g.organization_id = w.organization_id and g.social_account_id = w.social_account_id
    )
    select ordinal, verdict, organization_id, id, w.is_lined,
        case when verdict = 'CLAIMED' or w.is_lined then next_version else version end as version, next_action_time,
        draft_id, next_run, next_attempt, next_fence, next_key, next_month, in_doubt, revision, withdrawn_below,
        create_time, lease_end, provider, external_account_id, credentials, content, content_digest
    from judged
    cross join lateral (select verdict in ('ACCOUNT_BUSY', 'PROVIDER_BUSY') and not stands_in_line as is_lined) w
""")


async def claim(
    connection: AsyncConnection, commands: Sequence[Command], lanes: Sequence[Lane], *, now: datetime, sender: str
) -> dict[int, Judged]:
    """Returns the verdicts by the index of the command; a command whose job is absent or locked has none.

    No two commands may name the same job. `sender` names this claim on its attempts.
    """
    leases = {lane.provider: lane.lease for lane in lanes}
    result = await connection.execute(
        _CLAIM,
        {
            "organization_ids": [each.organization_id for each in commands],
            "ids": [each.post_job_id for each in commands],
            "social_account_ids": [each.target.social_account_id for each in commands],
            "slot_sequences": [each.slot_sequence for each in commands],
            "slot_ids": [each.slot_id for each in commands],
            "slot_revisions": [each.slot_revision for each in commands],
            "schedule_times": [each.schedule_time for each in commands],
            "not_afters": [each.not_after for each in commands],
            "content_revisions": [each.content_revision for each in commands],
            "max_attempts": [each.max_attempts for each in commands],
            "traceparents": [each.traceparent for each in commands],
            "target_months": [each.target_month for each in commands],
            "from_lines": [each.from_line for each in commands],
            "providers": [lane.provider for lane in lanes],
            "rooms": [lane.room for lane in lanes],
            "lease_ends": [now + lane.lease for lane in lanes],
            "sender": sender,
            "now": now,
        },
    )
    return {row.ordinal - 1: _judged(row, commands[row.ordinal - 1], leases, now) for row in result}


def _judged(row: Row[Any], command: Command, leases: Mapping[str, timedelta], now: datetime) -> Judged:
    verdict = Verdict(row.verdict)
    return Judged(
        verdict=verdict,
        organization_id=row.organization_id,
        id=row.id,
        version=row.version,
        next_action_time=row.next_action_time,
        is_lined=row.is_lined,
        claimed=_claimed(row, command, leases[row.provider], now) if verdict is Verdict.CLAIMED else None,
    )


def _claimed(row: Row[Any], command: Command, lease: timedelta, now: datetime) -> Claimed:
    job = PostJob(
        organization_id=row.organization_id,
        id=row.id,
        draft_id=row.draft_id,
        target=command.target,
        state=JobState.SENDING,
        version=row.version,
        run=row.next_run,
        slot_sequence=command.slot_sequence,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        next_action_time=row.lease_end,
        max_attempts=command.max_attempts,
        attempts=row.next_attempt,
        fence=row.next_fence,
        in_doubt=row.in_doubt,
        content_revision=row.revision,
        wanted_revision=command.content_revision,
        withdrawn_below=row.withdrawn_below,
        last_attempt_time=now,
        target_month=row.next_month,
        traceparent=command.traceparent,
        create_time=row.create_time,
        update_time=now,
    )
    return Claimed(
        job=job,
        provider=row.provider,
        external_account_id=row.external_account_id,
        credentials=row.credentials,
        content=row.content,
        content_digest=row.content_digest,
        idempotency_key=row.next_key,
        lease=lease,
    )
