"""Accounts of which Publisher has said that they do not exist; an event of one that comes to be is newer."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS = (
    """
    alter table social_account
        drop constraint social_account_state_check,
        add constraint social_account_state check (
            state in ('CONNECTED', 'DISCONNECTED', 'ABSENT') and (state = 'ABSENT') = (version = 0)
        )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
