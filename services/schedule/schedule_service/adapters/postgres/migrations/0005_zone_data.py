"""The law of each zone in use, as it was when times were announced."""

from alembic import op

revision = "0005"
down_revision = "0004"

ZONE_DATA = """
    create table zone_data (
        tzdata_version text not null,
        time_zone text not null,
        -- The compiled zone (TZif) of that release.
        data bytea not null,
        primary key (tzdata_version, time_zone)
    )
"""


def upgrade() -> None:
    op.execute(ZONE_DATA)
