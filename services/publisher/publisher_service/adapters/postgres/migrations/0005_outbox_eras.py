"""Marks of outbox rows belong to eras, and processes take turns at the outbox."""

from servicekit.pg.migrations.service_tables import upgrade_to_v3

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    upgrade_to_v3()
