"""The time that a draft asks for, its category, and the accounts on which it did not get that time.

Processes of the release before leave the columns as they are, and announce drafts without them.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    """
    alter table draft
        add column requested_time timestamptz,
        add column category_id text not null default '',
        -- By account: draft version, time in microseconds, reason, message, time of the refusal.
        add column slot_refusals jsonb
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
