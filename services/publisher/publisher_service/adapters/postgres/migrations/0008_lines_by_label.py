"""The line of an account by what its posts show: a page that is relabeled does not read those before it again."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = (
    """
    create index post_job_in_line on post_job (organization_id, social_account_id, state_reason, schedule_time, id)
    where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED')
    """,
    "drop index post_job_line",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
