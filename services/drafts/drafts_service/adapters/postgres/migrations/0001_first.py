"""Drafts, the post jobs of their targets, and the archive of what happened to those."""

from alembic import op

from servicekit.pg.migrations.service_tables import create_v1

revision = "0001"
down_revision = None

STATEMENTS = (
    """
    create table draft (
        organization_id text not null,
        id text not null,
        content bytea not null,
        content_digest text not null,
        targets jsonb not null,
        revision bigint not null,
        version bigint not null,
        edit_version bigint not null,
        approved_digest text,
        approve_time timestamptz,
        approver text,
        withdraw_below bigint,
        withdraw_due_time timestamptz,
        state text not null check (state in ('DRAFT', 'SCHEDULED', 'PUBLISHING', 'PUBLISHED', 'PARTIALLY_PUBLISHED',
            'FAILED', 'NEEDS_ATTENTION')),
        schedule_time timestamptz,
        publish_time timestamptz,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id),
        constraint draft_targets check (
            jsonb_typeof(targets) = 'array' and jsonb_array_length(targets) between 1 and 25
        ),
        constraint draft_versions check (revision >= 1 and version >= revision and edit_version >= revision),
        -- Nothing but the content as it stands can be approved.
        constraint draft_approved_content check (approved_digest = content_digest),
        constraint draft_approval check (
            (approved_digest is null) = (approve_time is null) and (approved_digest is null) = (approver is null)
        ),
        -- An older text that has to be taken back is never forgotten: there is always a next time to ask.
        constraint draft_withdrawal check (
            (withdraw_below is null) = (withdraw_due_time is null) and withdraw_below <= revision
        ),
        constraint draft_published check (publish_time is null or state = 'PUBLISHED')
    ) with (fillfactor = 80)
    """,
    "create index draft_withdrawals on draft (withdraw_due_time) where withdraw_due_time is not null",
    # One index answers both questions that are asked of it, and leaves the planner nothing to choose while the table is
    # new and its statistics say nothing.
    """
    create table post_job (
        organization_id text not null,
        draft_id text not null,
        id text not null,
        version bigint not null,
        social_account_id text not null,
        channel text not null,
        destination text not null,
        state text not null check (state in ('PENDING', 'SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED',
            'UNKNOWN', 'PUBLISHED', 'FAILED', 'MISSED', 'CANCELED', 'NEEDS_ATTENTION')),
        schedule_time timestamptz,
        publish_time timestamptz,
        external_url text not null,
        error_message text not null,
        primary key (organization_id, draft_id, id)
    ) with (fillfactor = 80)
    """,
    """
    create table post_job_event (
        organization_id text not null,
        post_job_id text not null,
        version bigint not null,
        draft_id text not null,
        kind text not null,
        payload bytea not null,
        occur_time timestamptz not null,
        primary key (organization_id, post_job_id, version)
    )
    """,
)


def upgrade() -> None:
    create_v1()
    for statement in STATEMENTS:
        op.execute(statement)
