"""The settlement of sent posts: one statement for a batch of any size. It obeys the rules of `claim`.

Every answer of a provider goes this way. Attempts without an answer, and those that a look, late proof or a person
closes, are closed by `attempts`.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from publisher_service.adapters.postgres.destinations import DEACTIVATED, record_signs
from publisher_service.adapters.postgres.follow_ups_due import NOTE_SETTLED
from publisher_service.domain.destination import MOST_FAILURES, Deactivation
from publisher_service.domain.limits import action_of_job
from publisher_service.domain.settlement import Settlement
from servicekit.pg.session import Session, Statement
from servicekit.record import record

_SETTLE = Statement(f"""
    with settled as (
        update post_job j set
            state = r.state, state_reason = r.state_reason, version = j.version + 1,
            next_action_time = r.next_action_time, in_doubt = r.in_doubt, unknown_until = r.unknown_until,
            attempts = r.attempts, publish_time = r.publish_time,
            external_id = r.external_id, external_url = r.external_url, evidence_kind = r.evidence_kind,
            error_reason = r.error_reason, error_message = r.error_message, last_attempt_time = r.end_time,
            update_time = :now
        from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]),
            cast(:states as text[]), cast(:state_reasons as text[]), cast(:next_action_times as timestamptz[]),
            cast(:attempts as integer[]), cast(:publish_times as timestamptz[]), cast(:external_ids as text[]),
            cast(:external_urls as text[]), cast(:evidence_kinds as text[]), cast(:error_reasons as text[]),
            cast(:error_messages as text[]), cast(:end_times as timestamptz[]), cast(:attempt_states as text[]),
            cast(:activity_ids as text[]), cast(:outcomes as text[]),
            cast(:pauses_until as timestamptz[]), cast(:in_doubts as boolean[]), cast(:unknown_untils as timestamptz[]),
            cast(:signs as text[]), cast(:actions as text[]), cast(:failures as integer[])
        ) as r (organization_id, id, fence, state, state_reason, next_action_time, attempts, publish_time, external_id,
            external_url, evidence_kind, error_reason, error_message, end_time, attempt_state, activity_id, outcome,
            pause_until, in_doubt, unknown_until, sign, action, failures)
        where j.organization_id = r.organization_id and j.id = r.id and j.fence = r.fence and j.state = 'SENDING'
        -- Only what is read below: each further column would be copied for every row.
        returning r.organization_id, r.id, r.fence, j.social_account_id, r.external_id, r.error_reason,
            r.error_message, r.end_time, r.attempt_state, r.activity_id, r.outcome, r.pause_until, r.action, j.run,
            r.failures, j.parts,
            r.sign, case when r.sign is not null then j.channel end as channel,
            case when r.sign is not null then j.destination end as destination
    ),
    closed as (
        update attempt a set
            state = s.attempt_state, end_time = s.end_time, external_id = s.external_id,
            error_reason = s.error_reason, error_message = s.error_message
        from settled s
        where a.organization_id = s.organization_id and a.post_job_id = s.id and a.fence = s.fence
        returning a.sender
    ),
    ended as (select sender, count(*) as jobs from closed group by sender),
    -- A row that is settled twice at once stays, and goes when its lease ends.
    counted as (
        update open_claim c set unsettled = c.unsettled - e.jobs
        from ended e where c.sender = e.sender and c.unsettled > e.jobs
    ),
    completed as (
        delete from open_claim c using ended e where c.sender = e.sender and c.unsettled = e.jobs
    ),
    -- The next in line may go, unless the provider asked for a pause.
    released as (
        update account_gate g set
            open_job_id = null, failures = s.failures,
            resume_time = greatest(g.resume_time, s.pause_until),
            wake_time = case when g.lined and g.connected and not g.held and g.enabled
                then greatest(cast(:now as timestamptz), g.resume_time, s.pause_until) end
        from settled s
        where g.organization_id = s.organization_id and g.social_account_id = s.social_account_id
            and g.open_job_id = s.id
        returning g.wake_time, s.activity_id, g.limited or g.post_spacing is not null as is_counted
    ),
    logged as (
        insert into activity (organization_id, social_account_id, id, post_job_id, action, outcome, create_time, run)
        select organization_id, social_account_id, activity_id, id, action, outcome, end_time, run from settled
        where outcome <> ''
    ),
    -- Nothing for posts without follow-ups, as nearly all are.
    followed as (
        {NOTE_SETTLED}
    ),
    -- Nothing for posts to the feed of an account, as nearly all are.
    reached as (
        {record_signs("settled")}
    )
    select activity_id, exists (select 1 from released where wake_time is not null) as wakes,
        activity_id in (select activity_id from released where is_counted) as is_counted, null as deactivated
    from settled
    union all
    select '', false, false, {DEACTIVATED} from reached where is_deactivated
""")


@record(frozen=True, slots=True, kw_only=True)
class SettleRow:
    """A settlement, and the activity that is stored with it. The activity's id names the row."""

    settlement: Settlement
    activity_id: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The activity ids of the settled rows: those of rows that were skipped are missing."""

    activity_ids: Set[str]
    # Those of accounts whose posts a limit counts by now, even if none did when they were claimed.
    counted: Set[str]
    # The line of some account has its turn now, or soon.
    wakes: bool
    # The destinations to which no post goes from now on.
    deactivated: Sequence[Deactivation]


async def record_settlements(session: Session, rows: Sequence[SettleRow], *, now: datetime) -> Settled:
    """Writes jobs, attempts, gates and activity; skips a row whose attempt is no longer the open one."""
    jobs = [row.settlement.job for row in rows]
    settled = await session.fetch(
        _SETTLE,
        {
            "organization_ids": [job.organization_id for job in jobs],
            "ids": [job.id for job in jobs],
            "fences": [job.fence for job in jobs],
            "states": [job.state for job in jobs],
            "state_reasons": [job.state_reason for job in jobs],
            "next_action_times": [job.next_action_time for job in jobs],
            "attempts": [job.attempts for job in jobs],
            "publish_times": [job.publish_time for job in jobs],
            "external_ids": [job.external_id for job in jobs],
            "external_urls": [job.external_url for job in jobs],
            "evidence_kinds": [job.evidence_kind for job in jobs],
            # A job that was being sent has the error of its attempt.
            "error_reasons": [row.settlement.error_reason for row in rows],
            "error_messages": [row.settlement.error_message for row in rows],
            "end_times": [job.last_attempt_time for job in jobs],
            "attempt_states": [row.settlement.attempt_state for row in rows],
            "activity_ids": [row.activity_id for row in rows],
            "outcomes": [row.outcome for row in rows],
            "failures": [row.settlement.failures for row in rows],
            "pauses_until": [row.settlement.pause_until for row in rows],
            "in_doubts": [job.in_doubt for job in jobs],
            "unknown_untils": [job.unknown_until for job in jobs],
            # Null for the feed of an account: it has no health.
            "signs": [row.settlement.sign or None if row.settlement.job.target.destination else None for row in rows],
            "actions": [action_of_job(job) for job in jobs],
            "most_failures": MOST_FAILURES,
            "now": now,
        },
    )
    return Settled(
        activity_ids={activity_id for activity_id, *_ in settled if activity_id},
        counted={activity_id for activity_id, _, is_counted, _ in settled if is_counted},
        wakes=any(wakes for _, wakes, *_ in settled),
        deactivated=[Deactivation(*fields) for *_, fields in settled if fields],
    )
