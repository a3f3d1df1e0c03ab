"""Payloads of the outbox are stored uncompressed: they are read once, soon, and go after a day."""

from servicekit.pg.migrations.service_tables import upgrade_to_v4

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    upgrade_to_v4()
