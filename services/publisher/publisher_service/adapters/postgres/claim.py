"""The claim: one statement decides which commands of a batch may be sent, and records the attempts to send them.

Its rules, each one measured: it finds rows by key from an unnested array, because a join of two CTEs is quadratic in
the batch; it waits for no lock (SKIP LOCKED), so it cannot deadlock; it decides on the locked, newest version of job
and gate. It returns what it wrote, so nothing is computed a second time.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from publisher_service.adapters.postgres.checks import OPINION
from publisher_service.adapters.postgres.looked_at import looked_at_arguments
from publisher_service.adapters.postgres.marks import COUNT_UP, IN_SAFE_MODE, IS_OLDER, mark_arrays
from publisher_service.domain.claim import NO_SETTINGS, Claimed, Command, Judged, Lane, Verdict
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.mark import Mark
from publisher_service.domain.post_job import JobState, PostJob
from servicekit.pg.session import Row, Session, Statement

_NO_MARKS: Mapping[str, Mark] = {}
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
        c.known_job_version,
        j.organization_id, j.id, j.draft_id, j.social_account_id, j.channel, j.destination, j.state,
        j.state_reason, j.version, j.slot_sequence, j.slot_id, j.slot_revision, j.next_action_time, j.fence, j.in_doubt,
        j.content_revision as sent_revision, j.withdrawn_below, j.create_time, j.part, j.parts, j.follows,
        -- The run has ended: the command begins the next one. What a job becomes is computed here and nowhere else.
        e.ended,
        case when e.ended then j.run + 1 else j.run end as next_run,
        case when e.ended then 0 else j.attempts end as spent,
        coalesce(nullif(c.target_month, ''), j.target_month) as next_month,
        (j.state_reason, j.slot_id, j.slot_revision, j.not_after)
            is not distinct from ('IN_LINE', c.slot_id, c.slot_revision, c.not_after) as stands_in_line,
        -- A call began the run, and this is a command of the slot that the job had then: that of the run has its times.
        j.called_run, r.is_called, r.is_called and j.publish_now as publish_now, r.is_called and j.over_cap as over_cap,
        (c.slot_sequence, c.slot_id, c.slot_revision) = (j.slot_sequence, j.slot_id, j.slot_revision)
            and (c.schedule_time, c.not_after) is distinct from (j.schedule_time, j.not_after) as is_of_slot,
        -- A wait for content, media or a limit may be over before its next action.
        j.state_reason not in ('CONTENT_PENDING', 'SEND_WINDOW', 'DAILY_CAP', 'PROVIDER_QUOTA', 'SPACING',
            'MEDIA') as is_timed,
        j.brand_id, j.campaign_id, g.connected, g.held, g.open_job_id, g.resume_time, g.lined, g.failures,
        g.enabled, g.open_from, g.open_until,
        cast(g.closed_channels ->> j.channel as timestamptz) as closed_until,
        greatest(:now, c.schedule_time) as send_time, c.action,
        -- Comments below a post count for nothing.
        c.action <> 'POST' or (g.limited and j.part = 0) as is_limited,
        c.action <> 'POST' or ((g.limited or g.post_spacing is not null) and j.part = 0) as is_counted,
        case when c.action = 'POST' then g.last_post_time + g.post_spacing
            else g.last_outreach_time + cast(:outreach_spacing as interval) end as spaced_until
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:slot_sequences as bigint[]),
        cast(:slot_ids as text[]), cast(:slot_revisions as bigint[]), cast(:schedule_times as timestamptz[]),
        cast(:not_afters as timestamptz[]), cast(:content_revisions as bigint[]), cast(:max_attempts as integer[]),
        cast(:traceparents as text[]), cast(:target_months as text[]), cast(:actions as text[]),
        cast(:known_job_versions as bigint[])
    ) with ordinality as c (organization_id, id, slot_sequence, slot_id, slot_revision, schedule_time, not_after,
        content_revision, max_attempts, traceparent, target_month, action, known_job_version, ordinal)
    join post_job j on j.organization_id = c.organization_id and j.id = c.id
    cross join lateral (select j.state in ('FAILED', 'MISSED', 'CANCELED') as ended) e
    cross join lateral (select j.called_run = j.run and not e.ended as is_called) r
    -- Lateral, so that both columns always are index conditions: for a join the planner may use one of them.
    cross join lateral (
        select gate.connected, gate.held, gate.open_job_id, gate.lined, gate.resume_time, gate.enabled, gate.open_from,
            gate.open_until, gate.limited, gate.post_spacing, gate.last_post_time, gate.last_outreach_time,
            gate.failures, gate.closed_channels
        from account_gate gate
        where gate.organization_id = j.organization_id and gate.social_account_id = j.social_account_id
        for no key update skip locked
    ) g
    for update of j skip locked
"""

# The rows that the checks are conditions on: `t`, `k`, `s`, `b`, `p` and `u`.
LOOKED_AT: Final = f"""
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
    -- A plain post of an account without a cap of its own looks nothing up. All who change the use of a cap hold the
    -- lock of the gate; the row is locked to be read in its newest version.
    left join lateral (
        select a.day_start, a.day_end, a.used,
            coalesce(
                a.cap, (cast(:default_caps as integer[]))[array_position(cast(:capped_actions as text[]), t.action)]
            ) as cap,
            exists (
                select from reservation r
                where r.organization_id = t.organization_id and r.post_job_id = t.id and r.run = t.next_run
                    and r.reserve_time >= a.day_start and r.reserve_time < a.day_end
            ) as is_reserved
        from account_action a
        where t.is_limited and a.organization_id = t.organization_id and a.social_account_id = t.social_account_id
            and a.action = t.action
        limit 1
        for no key update skip locked
    ) u on true
    -- Only posts of providers that prepare posts look this up.
    left join lateral (
        select made.state, made.content_digest, made.run, made.handle, made.expire_time, made.next_time,
            made.error_reason, made.error_message
        from preparation made
        where s.provider = any(cast(:preparing as text[])) and made.organization_id = t.organization_id
            and made.post_job_id = t.id
        limit 1
    ) p on true
"""

# The same rows for those who only look.
UNLOCKED: Final = re.sub(r"\bfor (no key )?update( of \w+)? skip locked\b", "", LOOKED_AT)

_CLAIM = Statement(f"""
    with looked_at as materialized (
        select
            t.ordinal, t.command_slot_sequence, t.command_slot_id, t.command_slot_revision, t.command_time,
            t.command_not_after, t.wanted_revision, t.command_max_attempts, t.command_traceparent,
            t.organization_id, t.id, t.draft_id, t.social_account_id, t.version, t.next_action_time, t.fence,
            t.in_doubt, t.withdrawn_below, t.create_time, t.ended, t.next_run, t.spent, t.next_month, t.stands_in_line,
            t.called_run, t.publish_now, t.over_cap, t.brand_id, t.campaign_id, t.parts, t.follows,
            b.revision, b.content, b.content_digest, s.provider, s.external_account_id, s.credentials,
            -- Nearly all accounts have none.
            nullif(cast(s.settings as text), '{{}}') as settings,
            p.handle, t.failures, t.open_from, u.day_end, t.closed_until, t.spaced_until, t.is_counted,
            t.is_limited and not u.is_reserved as reserves,
            case
                when {IS_OLDER} then 'OLDER' when {IN_SAFE_MODE} then 'SAFE_MODE'
                when t.known_job_version > t.version then 'COMMAND_AHEAD' else {OPINION}
            end as opinion
        {LOOKED_AT}
    ),
    -- One post of an account at a time, the earliest first, and no more of a provider than there is room for; of a
    -- crowded organization none, which has no place. The rows that are sorted here are narrow: to sort wide ones cost a
    -- tenth of the statement.
    in_turn as materialized (
        select ordinal, provider,
            case when not is_crowded then row_number() over (partition by provider, is_crowded order by ordinal) end
                as place
        from (
            select ordinal, provider,
                (provider, organization_id) in (
                    select * from unnest(cast(:crowded_providers as text[]), cast(:crowded as text[]))
                ) as is_crowded,
                row_number() over (
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
                when (select bool_or(opinion = 'COMMAND_AHEAD') from looked_at) then 'SAFE_MODE'
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
            error_reason = '', error_message = '', last_attempt_time = :now, update_time = :now,
            parked_on = '', expected_time = null
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
    counted as (
        insert into claim_mark as known (process, number, time)
        select :process, 1, :now where exists (select from judged where verdict = 'CLAIMED')
        {COUNT_UP}
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
            error_message = case when v.ended then '' else j.error_message end, update_time = :now,
            parked_on = '', expected_time = null
        from judged v
        where v.verdict in ('ACCOUNT_BUSY', 'PROVIDER_BUSY') and j.organization_id = v.organization_id and j.id = v.id
            and j.state not in ('SENDING', 'UNKNOWN', 'PUBLISHED') and not v.stands_in_line
    ),
    gates as materialized (
        select organization_id, social_account_id, min(id) filter (where verdict = 'CLAIMED') as claimed_id,
            bool_or(verdict <> 'CLAIMED') as some_wait, max(provider) as provider,
            max(verdict) filter (where verdict in ('ORGANIZATION_ON_HOLD', 'PROVIDER_ON_HOLD')) as frozen,
            max(open_from) filter (where verdict = 'SEND_WINDOW') as open_from,
            -- The line may sleep until a window opens, which is nothing to what PublishNow sends.
            bool_or(publish_now and verdict in ('ACCOUNT_BUSY', 'PROVIDER_BUSY')) as is_urgent
        from judged
        where verdict in ('CLAIMED', 'ACCOUNT_BUSY', 'PROVIDER_BUSY', 'ACCOUNT_NOT_CONNECTED', 'ORGANIZATION_ON_HOLD',
            'PROVIDER_ON_HOLD', 'ACCOUNT_ON_HOLD', 'ACCOUNT_DISABLED', 'SEND_WINDOW')
        group by organization_id, social_account_id
    ),
    -- While a post is open, its settlement wakes the line. A frozen line stands still until its hold is released, and
    -- then until it is freed in its turn, unless its first post is claimed before.
    gated as (
        update account_gate g set
            provider = coalesce(w.provider, g.provider),
            open_job_id = coalesce(w.claimed_id, g.open_job_id),
            lined = g.lined or w.some_wait,
            frozen = case when w.frozen is null and w.claimed_id is null then g.frozen else coalesce(w.frozen, '') end,
            relabel = g.relabel or (
                g.lined and g.frozen <> coalesce(w.frozen, case when w.claimed_id is null then g.frozen else '' end)
            ),
            wake_time = case
                when w.claimed_id is null and g.open_job_id is null and g.connected and not g.held and g.enabled
                    and w.frozen is null and g.frozen = '' and (g.lined or w.some_wait)
                    then greatest(:now, g.resume_time,
                        case when not w.is_urgent then w.open_from end,
                        case when g.lined and not w.is_urgent then g.wake_time end)
            end
        from gates w
        where g.organization_id = w.organization_id and g.social_account_id = w.social_account_id
    )
    select ordinal, verdict, w.is_lined,
        case when verdict = 'CLAIMED' or w.is_lined then next_version else version end as version, next_action_time,
        next_run, next_attempt, next_fence, next_key, next_month, in_doubt, revision, withdrawn_below, create_time,
        called_run, publish_now, over_cap, brand_id, campaign_id, parts, follows, lease_end, provider,
        external_account_id, credentials, settings, content, content_digest, handle, failures, is_counted, reserves,
        case verdict
            when 'SEND_WINDOW' then open_from when 'DAILY_CAP' then day_end
            when 'PROVIDER_QUOTA' then closed_until when 'SPACING' then spaced_until
        end,
        coalesce((select number from counted), 0) as mark
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
    process: str = "",
    marks: Mapping[str, Mark] = _NO_MARKS,
    limits: LimitDefaults = DEFAULTS,
) -> dict[int, Judged]:
    """Returns the verdicts by the index of the command; a command whose job is absent or locked has none.

    No two commands may name the same job. `sender` names this claim on its attempts, `process` its process; with
    `from_line` the lines of the accounts ask, because they have their turn. A database that is older than any of the
    `marks` claims nothing.
    """
    leases = {lane.provider: lane.lease for lane in lanes}
    arguments = looked_at_arguments(commands, lanes, now=now, from_line=from_line, limits=limits)
    lease_ends = [now + lane.lease for lane in lanes]
    noted = {"lease_ends": lease_ends, "sender": sender, "process": process}
    rows = await session.fetch(_CLAIM, {**arguments, **mark_arrays(marks), **noted})
    return {row[0] - 1: _judged(row, commands[row[0] - 1], leases, now) for row in rows}


def _judged(row: Row, command: Command, leases: Mapping[str, timedelta], now: datetime) -> Judged:
    _, verdict, is_lined, version, next_action_time, *attempt, is_counted, reserves, limit_time, mark = row
    return Judged(
        verdict=_VERDICTS[verdict],
        organization_id=command.organization_id,
        id=command.post_job_id,
        version=version,
        next_action_time=next_action_time,
        is_lined=is_lined,
        claimed=_claimed(attempt, version, command, leases, now, is_counted) if verdict == Verdict.CLAIMED else None,
        reserves=bool(reserves),
        limit_time=limit_time,
        mark=mark,
    )


def _claimed(
    attempt: list[Any],
    version: int,
    command: Command,
    leases: Mapping[str, timedelta],
    now: datetime,
    is_limited: bool,
) -> Claimed:
    """Returns the attempt with what it is to send: what the statement has computed, and what it took over."""
    run, number, fence, key, *stored = attempt[:-8]
    provider, external_account_id, credentials, settings, content, content_digest, handle, failures = attempt[-8:]
    return Claimed(
        job=_sending([run, number, fence, *stored], version, command, now),
        provider=provider,
        external_account_id=external_account_id,
        credentials=credentials,
        settings=NO_SETTINGS if settings is None else json.loads(settings),
        content=content,
        content_digest=content_digest,
        idempotency_key=key,
        lease=leases[provider],
        is_limited=is_limited,
        handle=handle or "",
        failures=failures,
    )


def _sending(attempt: list[Any], version: int, command: Command, now: datetime) -> PostJob:
    """Returns the job as the claim has stored it."""
    run, number, fence, month, in_doubt, revision, withdrawn_below, create_time, *more = attempt
    called_run, publish_now, over_cap, brand_id, campaign_id, parts, follows, lease_end = more
    return PostJob(
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
        brand_id=brand_id,
        campaign_id=campaign_id,
        last_attempt_time=now,
        target_month=month,
        traceparent=command.traceparent,
        create_time=create_time,
        update_time=now,
        called_run=called_run,
        publish_now=publish_now,
        over_cap=over_cap,
        part=command.part,
        parts=parts,
        follows=follows,
    )
