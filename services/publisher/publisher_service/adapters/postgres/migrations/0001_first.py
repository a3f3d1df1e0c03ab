"""Social accounts, contents, post jobs, attempts, activity."""

from alembic import op

from servicekit.pg.migrations.service_tables import create_v1

revision = "0001"
down_revision = None

STATEMENTS = (
    """
    create table social_account (
        organization_id text not null,
        id text not null,
        provider text not null,
        external_account_id text not null,
        display_name text not null,
        channels text[] not null,
        state text not null check (state in ('CONNECTED', 'DISCONNECTED')),
        credentials bytea not null,
        version bigint not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id)
    )
    """,
    # What every send of an account must look at, in one narrow row that is locked for it.
    """
    create table account_gate (
        organization_id text not null,
        social_account_id text not null,
        connected boolean not null,
        open_job_id text,
        primary key (organization_id, social_account_id)
    ) with (fillfactor = 50)
    """,
    """
    create table content (
        organization_id text not null,
        draft_id text not null,
        version bigint not null,
        revision bigint not null,
        content bytea not null,
        content_digest text not null,
        approved boolean not null,
        withdrawn_below bigint not null,
        post_job_ids text[] not null,
        primary key (organization_id, draft_id)
    )
    """,
    """
    create table post_job (
        organization_id text not null,
        id text not null,
        draft_id text not null,
        social_account_id text not null,
        channel text not null,
        destination text not null,
        state text not null check (state in ('PENDING', 'SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED',
            'UNKNOWN', 'PUBLISHED', 'FAILED', 'MISSED', 'CANCELED', 'NEEDS_ATTENTION')),
        state_reason text not null,
        version bigint not null,
        run integer not null,
        slot_id text not null,
        slot_revision bigint not null,
        schedule_time timestamptz,
        not_after timestamptz,
        next_action_time timestamptz,
        max_attempts integer not null,
        attempts integer not null,
        fence bigint not null,
        content_revision bigint not null,
        withdrawn_below bigint not null,
        publish_time timestamptz,
        external_id text not null,
        external_url text not null,
        evidence_kind text not null,
        error_reason text not null,
        error_message text not null,
        last_attempt_time timestamptz,
        target_month text not null,
        traceparent text not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id),
        constraint post_job_target unique (organization_id, draft_id, social_account_id, channel, destination),
        -- Nothing that still has to move may be forgotten, and nothing that has ended may wake up.
        constraint post_job_moves check (
            (state in ('READY', 'SENDING', 'WAITING', 'BLOCKED', 'UNKNOWN')) = (next_action_time is not null)
        ),
        constraint post_job_evidence check (
            (state = 'PUBLISHED') = (evidence_kind <> '' and publish_time is not null)
        ),
        constraint post_job_error check (state <> 'FAILED' or error_reason <> '')
    ) with (fillfactor = 70)
    """,
    "create index post_job_due on post_job (next_action_time) include (state) where next_action_time is not null",
    # A list names its states, all of them if need be: the newest of each, whatever stands beside them. What is being
    # sent is little and not for long: it stands apart, so that the claim writes into one small index, not into these.
    """
    create index post_job_newest on post_job (organization_id, state, create_time, id) where state <> 'SENDING'
    """,
    """
    create index post_job_account on post_job (organization_id, social_account_id, state, create_time, id)
    where state <> 'SENDING'
    """,
    "create index post_job_sending on post_job (organization_id, create_time, id) where state = 'SENDING'",
    """
    create index post_job_unconnected on post_job (organization_id, social_account_id)
    where state = 'BLOCKED' and state_reason = 'ACCOUNT_NOT_CONNECTED'
    """,
    """
    create table attempt (
        organization_id text not null,
        post_job_id text not null,
        run integer not null,
        number integer not null,
        fence bigint not null,
        state text not null check (state in ('SENDING', 'UNKNOWN', 'ACCEPTED', 'REJECTED', 'NOT_SENT', 'ABSENT',
            'ABANDONED')),
        idempotency_key text not null,
        content_revision bigint not null,
        content_digest text not null,
        start_time timestamptz not null,
        end_time timestamptz,
        external_id text not null,
        error_reason text not null,
        error_message text not null,
        primary key (organization_id, post_job_id, fence)
    ) with (fillfactor = 70)
    """,
    # Two open tries of one job, and two acceptances, cannot be written down.
    "create unique index attempt_open on attempt (organization_id, post_job_id) where state in ('SENDING', 'UNKNOWN')",
    "create unique index attempt_accepted on attempt (organization_id, post_job_id) where state = 'ACCEPTED'",
    """
    create table activity (
        organization_id text not null,
        social_account_id text not null,
        id text not null,
        post_job_id text not null,
        action text not null,
        outcome text not null check (outcome in ('SUCCESS', 'FAILED', 'RATE_LIMITED')),
        create_time timestamptz not null,
        primary key (organization_id, social_account_id, id)
    )
    """,
)


def upgrade() -> None:
    create_v1()
    for statement in STATEMENTS:
        op.execute(statement)
