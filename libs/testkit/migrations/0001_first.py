"""All tables of servicekit, in the steps in which the services added them."""

from servicekit.pg.migrations.service_tables import create_v1, upgrade_to_v2, upgrade_to_v3, upgrade_to_v4

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_v1()
    upgrade_to_v2()
    upgrade_to_v3()
    upgrade_to_v4()
