"""Account queues, the drafts that can be queued, slots and their targets."""

from alembic import op

from servicekit.pg.migrations.service_tables import create_v1

revision = "0001"
down_revision = None

STATEMENTS = (
    """
    create table account_queue (
        organization_id text not null,
        social_account_id text not null,
        schedule_version bigint not null,
        time_zone text not null,
        max_posts_per_day integer not null,
        enabled boolean not null,
        search_from timestamptz not null,
        full_from timestamptz not null,
        full_until timestamptz not null,
        next_due_time timestamptz,
        primary key (organization_id, social_account_id),
        constraint account_queue_schedule check (
            schedule_version >= 0 and max_posts_per_day >= 0 and (schedule_version = 0) = (time_zone = '')
        ),
        constraint account_queue_frontier check (search_from <= full_from and full_from <= full_until)
    ) with (fillfactor = 70)
    """,
    "create index account_queue_due on account_queue (next_due_time) where next_due_time is not null",
    """
    create table draft (
        organization_id text not null,
        id text not null,
        version bigint not null,
        revision bigint not null,
        approved boolean not null,
        targets jsonb not null,
        primary key (organization_id, id),
        constraint draft_targets check (jsonb_typeof(targets) = 'array')
    ) with (fillfactor = 80)
    """,
    """
    create table slot (
        organization_id text not null,
        id text not null,
        draft_id text not null,
        social_account_id text not null,
        schedule_time timestamptz not null,
        state text not null check (state in ('SCHEDULED', 'DISPATCHED', 'PUBLISHED', 'PARTIALLY_PUBLISHED', 'FAILED',
            'MISSED', 'NEEDS_ATTENTION', 'CANCELED')),
        origin text not null check (origin in ('QUEUE', 'EXACT')),
        revision bigint not null,
        emission integer not null,
        next_emit_at timestamptz,
        not_after timestamptz not null,
        time_zone text not null,
        local_date date,
        local_time time,
        expected_time timestamptz,
        publish_time timestamptz,
        content_revision bigint not null,
        traceparent text not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id),
        constraint slot_counts check (revision >= 1 and emission >= 0),
        -- What was handed over is asked for again, for ever, until it has ended.
        constraint slot_emission check ((state = 'DISPATCHED') = (next_emit_at is not null)),
        constraint slot_not_after check (not_after >= schedule_time),
        constraint slot_local check (
            (time_zone = '') = (local_date is null) and (local_date is null) = (local_time is null)
        ),
        constraint slot_expected check (expected_time is null or state in ('SCHEDULED', 'DISPATCHED')),
        constraint slot_published check (
            publish_time is not null or state not in ('PUBLISHED', 'PARTIALLY_PUBLISHED')
        )
    )
    """,
    """
    create unique index slot_live_time on slot (organization_id, social_account_id, schedule_time)
        where state in ('SCHEDULED', 'DISPATCHED')
    """,
    """
    create unique index slot_live_draft on slot (organization_id, draft_id, social_account_id)
        where state in ('SCHEDULED', 'DISPATCHED')
    """,
    "create index slot_emission_due on slot (next_emit_at) where next_emit_at is not null",
    "create index slot_by_time on slot (organization_id, state, schedule_time, id)",
    "create index slot_by_account on slot (organization_id, social_account_id, state, schedule_time, id)",
    "create index slot_by_draft on slot (organization_id, draft_id)",
    """
    create table slot_target (
        organization_id text not null,
        slot_id text not null,
        channel text not null,
        destination text not null,
        post_job_id text not null,
        job_state text check (job_state in ('PENDING', 'SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED', 'UNKNOWN',
            'PUBLISHED', 'FAILED', 'MISSED', 'CANCELED', 'NEEDS_ATTENTION')),
        job_version bigint not null,
        external_url text not null,
        error_message text not null,
        next_action_time timestamptz,
        publish_time timestamptz,
        primary key (organization_id, slot_id, channel, destination),
        foreign key (organization_id, slot_id) references slot (organization_id, id),
        constraint slot_target_job check ((job_version = 0) = (job_state is null))
    ) with (fillfactor = 60)
    """,
)


def upgrade() -> None:
    create_v1()
    for statement in STATEMENTS:
        op.execute(statement)
