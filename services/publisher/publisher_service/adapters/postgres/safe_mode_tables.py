"""The tables by which a restored database is noticed, and those of the safe mode."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, Text, text

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

# A row per process, which counts its claims and heartbeats.
claim_mark = Table(
    "claim_mark",
    metadata,
    text_column("process"),
    number_column("number"),
    Column("time", Timestamp, nullable=False),
    # The time of the last row of another process when this row was made.
    Column("previous_time", Timestamp),
    PrimaryKeyConstraint("process"),
)

safe_mode = Table(
    "safe_mode",
    metadata,
    count_column("number"),
    Column("active", Boolean, nullable=False),
    text_column("reason"),
    Column("enter_time", Timestamp, nullable=False),
    # Null if no process had left its time.
    Column("restored_time", Timestamp),
    # Null if no mark was known.
    Column("mark_time", Timestamp),
    Column("leave_time", Timestamp),
    Column("left_by", Text, nullable=False, server_default=""),
    # What is to be done next, see `domain.safe_mode`, and where in the stream or among the jobs that goes on.
    text_column("step"),
    Column("place", Text, nullable=False, server_default=""),
    Column("untouched", count_column("untouched").type, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("number"),
)
Index("safe_mode_active", safe_mode.c.active, unique=True, postgresql_where=text("active"))

# What a safe mode has found out about a post job.
reconciled_job = Table(
    "reconciled_job",
    metadata,
    count_column("number"),
    text_column("organization_id"),
    text_column("post_job_id"),
    text_column("kind"),
    PrimaryKeyConstraint("number", "organization_id", "post_job_id"),
)
