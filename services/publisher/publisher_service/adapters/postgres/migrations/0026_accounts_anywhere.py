"""An account at a provider is found without its organization, where nothing but its name says whose it is."""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.execute("create index social_account_anywhere on social_account (provider, external_account_id)")
