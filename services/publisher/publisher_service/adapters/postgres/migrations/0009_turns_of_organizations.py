"""Lines by organization: of one that has very many, no more are read than it may send."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    """
    create index account_gate_turn on account_gate (provider, organization_id, wake_time) where wake_time is not null
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
