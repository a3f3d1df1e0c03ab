"""Holds: what keeps posts from starting, and what a claim and a send look at to obey them."""

from alembic import op

revision = "0014"
down_revision = "0013"

STATEMENTS = (
    """
    create table hold (
        organization_id text not null,
        id text not null,
        -- Both empty for the release of a hold that was never put.
        scope text not null,
        scope_id text not null,
        revision bigint not null,
        reason text not null,
        holder text not null,
        in_force boolean not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id)
    )
    """,
    "create index hold_in_force on hold (organization_id, create_time, id) where in_force",
    "create index hold_scope on hold (organization_id, scope, scope_id) where in_force",
    # At most one row. Its number grows with each hold that is put, in the same transaction.
    "create table hold_epoch (id boolean primary key check (id), epoch bigint not null)",
    "alter table account_gate add column held boolean not null default false",
    "drop index post_job_in_line",
    # The condition of the previous release implies this one.
    """
    create index post_job_in_line on post_job (organization_id, social_account_id, state_reason, schedule_time, id)
    where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED', 'ACCOUNT_ON_HOLD')
    """,
    # Few jobs are ever in doubt, so that nearly none has an entry.
    "create index post_job_in_doubt on post_job (organization_id, social_account_id, id) where in_doubt",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
