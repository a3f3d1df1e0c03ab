"""Dead letters are redriven or archived, and what turns over quickly is vacuumed more often."""

from servicekit.pg.migrations.service_tables import upgrade_to_v2

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    upgrade_to_v2()
