"""Post jobs of follow-ups: comments below a post, or further parts of a thread. Those known before are posts."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("alter table post_job add column part integer not null default 0")
