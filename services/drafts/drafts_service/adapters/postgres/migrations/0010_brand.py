"""The brand of a draft.

Processes of the release before leave it as it is, and announce drafts without it.
"""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("alter table draft add column brand_id text not null default ''")
