"""Which accounts can post."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    """
    create table social_account (
        organization_id text not null,
        id text not null,
        version bigint not null,
        is_connected boolean not null,
        primary key (organization_id, id)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
