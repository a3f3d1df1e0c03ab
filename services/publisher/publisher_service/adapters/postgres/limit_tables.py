"""The tables of limits: schedules, use of daily caps, and lines of parked posts."""

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    Interval,
    PrimaryKeyConstraint,
    Table,
    Text,
    Time,
    text,
)

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

account_schedule = Table(
    "account_schedule",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    number_column("version"),
    # The row of a deleted schedule stays, so that an older event does not bring it back.
    Column("deleted", Boolean, nullable=False),
    text_column("time_zone"),
    Column("enabled", Boolean, nullable=False),
    # The send window: 0 is Sunday; null without a window. An end that is null is the end of the day.
    Column("window_days", ARRAY(Integer)),
    Column("window_start", Time),
    Column("window_end", Time),
    Column("min_spacing", Interval),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)

# A row for each action of an account that has a daily cap, made by the first claim that asks, or with a cap of its own.
account_action = Table(
    "account_action",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    text_column("action"),
    # The account's own cap; null means the default.
    Column("cap", Integer),
    Column("used", Integer, nullable=False, server_default=text("0")),
    # The local day whose use is counted; null until a claim asks.
    Column("local_date", Date),
    Column("day_start", Timestamp),
    Column("day_end", Timestamp),
    PrimaryKeyConstraint("organization_id", "social_account_id", "action"),
    CheckConstraint("cap >= 0", name="account_action_cap_check"),
    CheckConstraint("used >= 0", name="account_action_used_check"),
)

# Attempts that count for a daily cap, until they are proven to have had no effect.
reservation = Table(
    "reservation",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    number_column("fence"),
    count_column("run"),
    text_column("social_account_id"),
    text_column("action"),
    Column("reserve_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "post_job_id", "fence"),
)
Index(
    "reservation_use",
    reservation.c.organization_id,
    reservation.c.social_account_id,
    reservation.c.action,
    reservation.c.reserve_time,
)
Index("reservation_age", reservation.c.reserve_time)

# When the first posts that are parked on a limit of an account get back into its line.
parked_line = Table(
    "parked_line",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    Column("parked_on", Text, nullable=False),
    Column("wake_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "social_account_id", "parked_on"),
)
Index("parked_line_wake", parked_line.c.wake_time)
Index("parked_line_turn", parked_line.c.organization_id, parked_line.c.wake_time)
