"""Schedule's tables as the code knows them; the migrations make them, and a test holds the two together."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, PrimaryKeyConstraint, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from servicekit.pg.tables import Timestamp, add_service_tables

metadata = MetaData()
add_service_tables(metadata)


account_schedule = Table(
    "account_schedule",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("social_account_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    # Minutes since Sunday 00:00, local, ascending.
    Column("weekly_slots", ARRAY(SmallInteger), nullable=False),
    Column("max_posts_per_day", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
