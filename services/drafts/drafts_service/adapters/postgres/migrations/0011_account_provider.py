"""The provider of an account, by which drafts are checked; empty until it is announced again, or asked for."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("alter table social_account add column provider text not null default ''")
