"""The mark by which a restored database is noticed, and the safe mode."""

from alembic import op

revision = "0019"
down_revision = "0018"

STATEMENTS = (
    # A row per process, so that claims of several processes wait for no common row.
    """
    create table claim_mark (
        process text not null,
        number bigint not null,
        time timestamptz not null,
        previous_time timestamptz,
        primary key (process)
    ) with (fillfactor = 50)
    """,
    """
    create table safe_mode (
        number integer not null,
        active boolean not null,
        reason text not null,
        enter_time timestamptz not null,
        restored_time timestamptz,
        mark_time timestamptz,
        leave_time timestamptz,
        left_by text not null default '',
        step text not null,
        place text not null default '',
        untouched integer not null default 0,
        primary key (number)
    )
    """,
    "create unique index safe_mode_active on safe_mode (active) where active",
    """
    create table reconciled_job (
        number integer not null,
        organization_id text not null,
        post_job_id text not null,
        kind text not null,
        primary key (number, organization_id, post_job_id)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
