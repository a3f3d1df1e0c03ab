"""How far the PUBLISH stream was, and the slots of an account that wait for an answer."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = (
    """
    create table publish_stream (
        name text primary key,
        create_time timestamptz not null,
        last_sequence bigint not null,
        losses bigint not null,
        is_recovering boolean not null
    )
    """,
    """
    create index slot_unanswered on slot (organization_id, social_account_id)
        where (state = 'DISPATCHED') is true and not is_answered
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
