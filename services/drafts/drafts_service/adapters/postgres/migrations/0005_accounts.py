"""What is known of Publisher's accounts."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("""
        create table social_account (
            organization_id text not null,
            id text not null,
            version bigint not null,
            state text not null check (state in ('CONNECTED', 'DISCONNECTED')),
            primary key (organization_id, id)
        )
    """)
