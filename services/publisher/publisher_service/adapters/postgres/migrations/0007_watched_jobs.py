"""What an operator has to be warned of is found by index: posts that have not started, and posts that need a person."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    """
    create index post_job_watched on post_job (state, schedule_time)
    where state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
