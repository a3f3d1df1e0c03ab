"""Drafts' tables as the code uses them; a test compares them with those that the migrations create."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from servicekit.pg.tables import Timestamp, add_service_tables

metadata = MetaData()
add_service_tables(metadata)


draft = Table(
    "draft",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("content_digest", Text, nullable=False),
    Column("targets", JSONB, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("edit_version", BigInteger, nullable=False),
    Column("approved_digest", Text),
    Column("approve_time", Timestamp),
    Column("approver", Text),
    Column("withdraw_below", BigInteger),
    Column("withdraw_due_time", Timestamp),
    Column("exposed", Boolean, nullable=False, server_default=text("false")),
    Column("state", Text, nullable=False),
    Column("schedule_time", Timestamp),
    Column("publish_time", Timestamp),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    Column("requested_time", Timestamp),
    Column("category_id", Text, nullable=False, server_default=text("''")),
    Column("brand_id", Text, nullable=False, server_default=text("''")),
    # By account: draft version, time in microseconds, reason, message, time of the refusal; null if there are none.
    Column("slot_refusals", JSONB),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index("draft_withdrawals", draft.c.withdraw_due_time, postgresql_where=text("withdraw_due_time is not null"))

post_job = Table(
    "post_job",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("draft_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("social_account_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("state_reason", Text, nullable=False, server_default=text("''")),
    Column("schedule_time", Timestamp),
    Column("publish_time", Timestamp),
    Column("external_url", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    # 0 for the post itself, n for its n-th follow-up.
    Column("part", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("organization_id", "draft_id", "id"),
)

post_job_event = Table(
    "post_job_event",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("post_job_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("draft_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("occur_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "post_job_id", "version"),
)

social_account = Table(
    "social_account",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    # Never changes; empty if it is not known.
    Column("provider", Text, nullable=False, server_default=text("''")),
    PrimaryKeyConstraint("organization_id", "id"),
)
