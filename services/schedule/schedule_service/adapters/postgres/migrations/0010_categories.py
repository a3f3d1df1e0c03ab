"""Weekly slots that are kept for drafts of a category.

The default is for replicas of the release before. They replace `weekly_slots` only, so entries of `kept_slots` may
remain that are no weekly slots any more.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    """
    alter table account_schedule
        -- Minutes since Sunday 00:00, local, and the category for which each of these weekly slots is kept.
        add column kept_slots smallint[] not null default '{}',
        add column kept_for text[] not null default '{}',
        add constraint account_schedule_kept check (cardinality(kept_slots) = cardinality(kept_for))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
