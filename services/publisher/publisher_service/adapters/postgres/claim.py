"""The claim: one statement decides which commands of a batch may be sent, and records the attempts to send them.

Its rules, each one measured: it finds rows by key from an unnested array, because a join of two CTEs is quadratic in
the batch; it waits for no lock (SKIP LOCKED), so it cannot deadlock; it decides on the locked, newest version of job
and gate. It returns what it wrote, so nothing is computed a second time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from publisher_service.domain.claim import Claimed, Command, Judged, Lane, Verdict
from publisher_service.domain.post_job import JobState, PostJob
from servicekit.pg.session import Row, Session, Statement

_VERDICTS: Mapping[str, Verdict] = {verdict.value: verdict for verdict in Verdict}

# The newest versions of jobs and gates, locked.
_TAKEN = """
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
        j.organization_id, j.id, j.draft_id, j.social_account_id, j.state, j.state_reason, j.version,
        j.slot_sequence, j.slot_id, j.slot_revision, j.next_action_time, j.fence, j.in_doubt,
        j.content_revision as sent_revision, j.withdrawn_below, j.create_time,
        -- The run has ended: the command begins the next one. What a job becomes is computed here and nowhere else.
        e.ended,
        case when e.ended then j.run + 1 else j.run end as next_run,
        case when e.ended then 0 else j.attempts end as spent,
        coalesce(nullif(c.target_month, ''), j.target_month) as next_month,
        (j.state_reason, j.slot_id, j.slot_revision, j.not_after)
            is not distinct from ('IN_LINE', c.slot_id, c.slot_revision, c.not_after) as stands_in_line,
        g.connected, g.held,
        g.open_job_id is not null or g.resume_time > :now or (g.lined and not :from_line) as is_busy
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:slot_sequences as bigint[]),
        cast(:slot_ids as text[]), cast(:slot_revisions as bigint[]), cast(:schedule_times as timestamptz[]),
        cast(:not_afters as timestamptz[]), cast(:content_revisions as bigint[]), cast(:max_attempts as integer[]),
        cast(:traceparents as text[]), cast(:target_months as text[])
    ) with ordinality as c (organization_id, id, slot_sequence, slot_id, slot_revision, schedule_time, not_after,
        content_revision, max_attempts, traceparent, target_month, ordinal)
    join post_job j on j.organization_id = c.organization_id and j.id = c.id
    cross join lateral (select j.state in ('FAILED', 'MISSED', 'CANCELED') as ended) e
    -- Lateral, so that both columns always are index conditions: for a join the planner may use one of them.
    cross join lateral (
        select gate.connected, gate.held, gate.open_job_id, gate.lined, gate.resume_time from account_gate gate
        where gate.organization_id = j.organization_id and gate.social_account_id = j.social_account_id
        for no key update skip locked
    ) g
    for update of j skip locked
"""

_CLAIM = Statement(f"""
    with looked_at as materialized (
        select
            t.ordinal, t.command_slot_sequence, t.command_slot_id, t.command_slot_revision, t.command_time,
            t.command_not_after, t.wanted_revision, t.command_max_attempts, t.command_traceparent,
            t.organization_id, t.id, t.draft_id, t.social_account_id, t.version, t.next_action_time, t.fence,
            t.in_doubt, t.withdrawn_below, t.create_time, t.ended, t.next_run, t.spent, t.next_month, t.stands_in_line,
            b.revision, b.content, b.content_digest, s.provider, s.external_account_id, s.credentials,
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
                when t.held then 'ACCOUNT_ON_HOLD'
                when t.is_busy then 'ACCOUNT_BUSY'
                else 'CLAIMED'
            end as opinion
        -- Not a CTE, whose wide rows would be stored once more. It is read once: left joins cannot have it inside.
        from ({_TAKEN}) t
        left join content k on k.organization_id = t.organization_id and k.draft_id = t.draft_id
        left join social_account s on s.organization_id = t.organization_id and s.id = t.social_account_id
        -- Lateral with a limit, so that a run that is not in doubt, as nearly all are, looks nothing up, and that all
        -- columns are index conditions: without it the planner may join, and read the whole table for each row.
        left join lateral (
            select sent.content, sent.content_digest from kept_content sent
            where t.in_doubt and sent.organization_id = t.organization_id and sent.post_job_id = t.id
                and sent.revision = t.sent_revision
            limit 1
        ) kept on true
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
    -- One post of an account at a time, the earliest first, and no more of a provider than there is room for. The rows
    -- that are sorted here are narrow: to sort wide ones cost a tenth of the statement.
    in_turn as materialized (
        select ordinal, provider, row_number() over (partition by provider order by ordinal) as place
        from (
            select ordinal, provider, row_number() over (
                partition by organization_id, social_account_id order by command_time, id
            ) as turn
            from looked_at where opinion = 'CLAIMED'
        ) as waiting
        where turn = 1
    ),
    judged as materialized (
        select l.*,
            case
                when opinion <> 'CLAIMED' then opinion
                when ordinal = any (cast((
                    select array_agg(f.ordinal) from in_turn f
                    join unnest(cast(:providers as text[]), cast(:rooms as integer[])) as lane (provider, room)
                        on lane.provider = f.provider and f.place <= lane.room
                ) as bigint[])) then 'CLAIMED'
                when ordinal = any (cast((select array_agg(ordinal) from in_turn) as bigint[])) then 'PROVIDER_BUSY'
                else 'ACCOUNT_BUSY'
            end as verdict,
            l.version + 1 as next_version, l.fence + 1 as next_fence, l.spent + 1 as next_attempt,
            l.id || '-' || l.next_run as next_key,
            (cast(:lease_ends as timestamptz[]))[array_position(cast(:providers as text[]), provider)] as lease_end
        from looked_at l
    ),
    claimed as (
        update post_job j set
            state = 'SENDING', state_reason = '', version = v.next_version, fence = v.next_fence,
            run = v.next_run, attempts = v.next_attempt, target_month = v.next_month,
            slot_sequence = v.command_slot_sequence, slot_id = v.command_slot_id,
            slot_revision = v.command_slot_revision, schedule_time = v.command_time,
            not_after = v.command_not_after, max_attempts = v.command_max_attempts,
            traceparent = v.command_traceparent, content_revision = v.revision,
            wanted_revision = v.wanted_revision, next_action_time = null, lease_end = v.lease_end,
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
    -- Under one name a claim may take its second look, and then there is a row already.
    noted as (
        insert into open_claim as c (sender, lease_end, unsettled, organization_ids, post_job_ids)
        select :sender, min(v.lease_end), count(*), array_agg(v.organization_id), array_agg(v.id)
        from judged v where v.verdict = 'CLAIMED' having count(*) > 0
        on conflict (sender) do update set
            lease_end = least(c.lease_end, excluded.lease_end), unsettled = c.unsettled + excluded.unsettled,
            organization_ids = c.organization_ids || excluded.organization_ids,
            post_job_ids = c.post_job_ids || excluded.post_job_ids
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
        from judged
        where verdict in ('CLAIMED', 'ACCOUNT_BUSY', 'PROVIDER_BUSY', 'ACCOUNT_NOT_CONNECTED', 'ACCOUNT_ON_HOLD')
        group by organization_id, social_account_id
    ),
    -- While a post is open, its settlement wakes the line.
    gated as (
        update account_gate g set
            provider = coalesce(w.provider, g.provider),
            open_job_id = coalesce(w.claimed_id, g.open_job_id),
            lined = g.lined or w.some_wait,
            wake_time = case
                when w.claimed_id is null and g.open_job_id is null and g.connected and not g.held
                    and (g.lined or w.some_wait)
                    then greatest(:now, g.resume_time)
            end
        from gates w
        where g.organization_id = w.organization_id and g.social_account_id = w.social_account_id
    )
    select ordinal, verdict, w.is_lined,
        case when verdict = 'CLAIMED' or w.is_lined then next_version else version end as version, next_action_time,
        next_run, next_attempt, next_fence, next_key, next_month, in_doubt, revision, withdrawn_below, create_time,
        lease_end, provider, external_account_id, credentials, content, content_digest
    from judged
    cross join lateral (select verdict in ('ACCOUNT_BUSY', 'PROVIDER_BUSY') and not stands_in_line as is_lined) w
""")


async def claim(
    session: Session,
    commands: Sequence[Command],
    lanes: Sequence[Lane],
    *,
    now: datetime,
    sender: str,
    from_line: bool = False,
) -> dict[int, Judged]:
    """Returns the verdicts by the index of the command; a command whose job is absent or locked has none.

    No two commands may name the same job. `sender` names this claim on its attempts; with `from_line` the lines of the
    accounts ask, because they have their turn.
    """
    leases = {lane.provider: lane.lease for lane in lanes}
    rows = await session.fetch(
        _CLAIM,
        {
            "organization_ids": [each.organization_id for each in commands],
            "ids": [each.post_job_id for each in commands],
            "slot_sequences": [each.slot_sequence for each in commands],
            "slot_ids": [each.slot_id for each in commands],
            "slot_revisions": [each.slot_revision for each in commands],
            "schedule_times": [each.schedule_time for each in commands],
            "not_afters": [each.not_after for each in commands],
            "content_revisions": [each.content_revision for each in commands],
            "max_attempts": [each.max_attempts for each in commands],
            "traceparents": [each.traceparent for each in commands],
            "target_months": [each.target_month for each in commands],
            "from_line": from_line,
            "providers": [lane.provider for lane in lanes],
            "rooms": [lane.room for lane in lanes],
            "lease_ends": [now + lane.lease for lane in lanes],
            "sender": sender,
            "now": now,
        },
    )
    return {row[0] - 1: _judged(row, commands[row[0] - 1], leases, now) for row in rows}


def _judged(row: Row, command: Command, leases: Mapping[str, timedelta], now: datetime) -> Judged:
    _, verdict, is_lined, version, next_action_time, *attempt = row
    return Judged(
        verdict=_VERDICTS[verdict],
        organization_id=command.organization_id,
        id=command.post_job_id,
        version=version,
        next_action_time=next_action_time,
        is_lined=is_lined,
        claimed=_claimed(attempt, version, command, leases, now) if verdict == Verdict.CLAIMED else None,
    )


def _claimed(
    attempt: list[Any], version: int, command: Command, leases: Mapping[str, timedelta], now: datetime
) -> Claimed:
    """Returns the attempt with its job as it is stored: what the statement has computed, and what it took over."""
    run, number, fence, key, month, in_doubt, revision, withdrawn_below, create_time, lease_end, *send = attempt
    provider, external_account_id, credentials, content, content_digest = send
    job = PostJob(
        organization_id=command.organization_id,
        id=command.post_job_id,
        draft_id=command.draft_id,
        target=command.target,
        state=JobState.SENDING,
        version=version,
        run=run,
        slot_sequence=command.slot_sequence,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        next_action_time=lease_end,
        max_attempts=command.max_attempts,
        attempts=number,
        fence=fence,
        in_doubt=in_doubt,
        content_revision=revision,
        wanted_revision=command.content_revision,
        withdrawn_below=withdrawn_below,
        last_attempt_time=now,
        target_month=month,
        traceparent=command.traceparent,
        create_time=create_time,
        update_time=now,
    )
    return Claimed(
        job=job,
        provider=provider,
        external_account_id=external_account_id,
        credentials=credentials,
        content=content,
        content_digest=content_digest,
        idempotency_key=key,
        lease=leases[provider],
    )
