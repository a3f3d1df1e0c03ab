"""The tables of Schedule as the code knows them. Migrations create them, and a test compares the two."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
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
    # Days from 0 for Sunday to 6 for Saturday, ascending; empty without a window. Times are minutes of the day.
    Column("window_days", ARRAY(SmallInteger), nullable=False),
    Column("window_start", SmallInteger, nullable=False),
    Column("window_end", SmallInteger, nullable=False),
    Column("min_spacing", Interval, nullable=False),
    # The tzdata release that the schedule was announced with.
    Column("tzdata_version", Text, nullable=False),
    # A deleted schedule keeps its row, so that the versions of an account's schedules only grow.
    Column("delete_time", Timestamp),
    # Slots of the account may be in another zone: one that the schedule had before, or had when it was deleted.
    Column("slots_elsewhere", Boolean, nullable=False, server_default=text("false")),
    # The weekly slots that are kept for categories, and the category of each. Those that are not in `weekly_slots` are
    # ignored: the previous release replaces only that.
    Column("kept_slots", ARRAY(SmallInteger), nullable=False, server_default="{}"),
    Column("kept_for", ARRAY(Text), nullable=False, server_default="{}"),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
Index(
    "account_schedule_live",
    account_schedule.c.organization_id,
    account_schedule.c.social_account_id,
    postgresql_where=text("delete_time is null"),
)

upcoming_slot = Table(
    "upcoming_slot",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("slot_id", Text, nullable=False),
    # Empty for a canceled slot, which counts for no account. Its row stays, because older events may follow.
    Column("social_account_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("schedule_time", Timestamp, nullable=False),
    # The wall-clock time that the slot keeps. Empty zone: unknown. No time: the slot is a plain instant.
    Column("time_zone", Text, nullable=False, server_default=""),
    Column("nominal_local_time", DateTime),
    PrimaryKeyConstraint("organization_id", "slot_id"),
)
Index(
    "upcoming_slot_by_account",
    upcoming_slot.c.organization_id,
    upcoming_slot.c.social_account_id,
    upcoming_slot.c.schedule_time,
)
Index("upcoming_slot_age", upcoming_slot.c.schedule_time)

schedule_rule = Table(
    "schedule_rule",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("brand_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    # Minutes since Sunday 00:00, local, ascending; none: the times are those of the rrule.
    Column("weekly_slots", ARRAY(SmallInteger), nullable=False),
    Column("rrule", Text, nullable=False),
    Column("start_minute", SmallInteger),
    Column("start_date", Date),
    Column("end_date", Date),
    Column("excluded_dates", ARRAY(Date), nullable=False),
    Column("channels", ARRAY(Text), nullable=False),
    Column("category_id", Text, nullable=False),
    Column("asset_policy", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("tzdata_version", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    # A deleted rule keeps its row, because its id is part of its targets' keys forever.
    Column("delete_time", Timestamp),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index(
    "schedule_rule_by_brand",
    schedule_rule.c.organization_id,
    schedule_rule.c.brand_id,
    schedule_rule.c.id,
    postgresql_where=text("delete_time is null"),
)

timer = Table(
    "timer",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    # The id of the row for jobkit.
    Column("job_id", BigInteger, Identity(always=True), nullable=False),
    Column("topic", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    # Set for a timer that fires once; the others have a cron expression.
    Column("fire_time", Timestamp),
    Column("cron", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("dst_policy", Text, nullable=False),
    Column("repeat_until", Timestamp),
    Column("misfire_policy", Text, nullable=False),
    Column("catch_up_interval", Interval, nullable=False),
    Column("skip_after", Interval, nullable=False),
    Column("auto_remove", Boolean, nullable=False),
    Column("paused", Boolean, nullable=False),
    # The current occurrence; null when there are no more.
    Column("due_time", Timestamp),
    # When the engine reads the row next; null when paused, finished or faulty.
    Column("sleep_until", Timestamp),
    Column("fence", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("fire_count", BigInteger, nullable=False),
    Column("last_fire_time", Timestamp),
    Column("last_occurrence_key", Text, nullable=False),
    Column("finish_time", Timestamp),
    Column("tzdata_version", Text, nullable=False),
    # The trace context of the call that created it, if that call was sampled and the timer fires once.
    Column("traceparent", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "id", postgresql_include=["paused", "finish_time"]),
    UniqueConstraint("job_id"),
)
Index("timer_due", timer.c.sleep_until, timer.c.job_id, postgresql_where=text("sleep_until is not null"))
Index("timer_finished", timer.c.finish_time, postgresql_where=text("finish_time is not null"))
Index(
    "timer_by_topic",
    timer.c.organization_id,
    timer.c.topic,
    timer.c.id,
    postgresql_include=["paused", "finish_time"],
)
Index(
    "timer_idle",
    timer.c.organization_id,
    timer.c.id,
    postgresql_include=["paused", "finish_time"],
    postgresql_where=text("paused or finish_time is not null"),
)
Index(
    "timer_faulty",
    timer.c.organization_id,
    timer.c.id,
    postgresql_where=text("sleep_until is null and not paused and finish_time is null"),
)

timer_room = Table(
    "timer_room",
    metadata,
    Column("organization_id", Text, primary_key=True),
    # How many timers may be created before the unfinished ones are counted again.
    Column("room", Integer, nullable=False),
)

# Indexes of the rows that depend on time zone data, by tzdata release and zone.
Index(
    "account_schedule_by_law",
    *account_schedule.c["tzdata_version", "time_zone", "organization_id", "social_account_id"],
    postgresql_where=text("delete_time is null"),
)
Index(
    "account_schedule_elsewhere",
    *account_schedule.c["organization_id", "social_account_id"],
    postgresql_where=text("slots_elsewhere"),
)
Index(
    "schedule_rule_by_law",
    *schedule_rule.c["tzdata_version", "time_zone", "organization_id", "id"],
    postgresql_where=text("delete_time is null"),
)
Index(
    "timer_by_law",
    *timer.c["tzdata_version", "time_zone", "organization_id", "id"],
    postgresql_where=text("cron <> '' and due_time is not null"),
)

# The compiled zones (TZif) that times were computed with.
zone_data = Table(
    "zone_data",
    metadata,
    Column("tzdata_version", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tzdata_version", "time_zone"),
)
