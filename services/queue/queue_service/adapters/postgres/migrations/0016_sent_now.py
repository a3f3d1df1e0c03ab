"""Targets that PublishNow sends, which their slots do not send any more."""

from alembic import op

revision = "0016"
down_revision = "0015"

STATEMENTS = (
    "alter table slot_target add column sent_now boolean not null default false",
    # Nearly always empty. Its condition has no column that other reports change.
    "create index slot_target_sent_now on slot_target (organization_id, slot_id) where sent_now",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
