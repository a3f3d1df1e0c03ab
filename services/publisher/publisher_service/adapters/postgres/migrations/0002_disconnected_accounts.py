"""Why and since when an account is disconnected."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # The defaults are for replicas of the release before.
    op.execute("""
        alter table social_account
            add column state_reason text not null default '',
            add column error_message text not null default '',
            add column disconnect_time timestamptz
    """)
