"""Slots that should have ended and have not."""

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = (
    "alter table slot add column overdue_time timestamptz",
    """
    create index slot_overdue on slot (not_after)
        where overdue_time is not null and next_emit_at is not null
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
