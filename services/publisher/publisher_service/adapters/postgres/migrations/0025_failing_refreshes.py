"""Since when refreshes of credentials fail: people hear of it when posts wait for one."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.execute("alter table credential add column failing_since timestamptz")
