"""Marks of outbox rows belong to eras, and processes take turns at the outbox."""

from servicekit.pg.migrations.service_tables import upgrade_to_v3

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    upgrade_to_v3()
