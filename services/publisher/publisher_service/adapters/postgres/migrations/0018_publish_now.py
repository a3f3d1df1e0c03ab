"""Runs that a call begins: of posts that are retried, and of posts that are sent at once."""

from alembic import op

revision = "0018"
down_revision = "0017"

STATEMENTS: tuple[str, ...] = (
    """
    alter table post_job
        -- Says whether the other two are about the present run: the previous release begins runs, too, and knows none
        -- of these columns.
        add column called_run integer not null default 0,
        add column publish_now boolean not null default false,
        add column over_cap boolean not null default false
    """,
    # A claim sets none of these columns but the reason, which is empty by then as a rule: it writes no entry.
    """
    create index post_job_urgent on post_job (organization_id, social_account_id, schedule_time, id)
    where publish_now and state_reason <> ''
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
