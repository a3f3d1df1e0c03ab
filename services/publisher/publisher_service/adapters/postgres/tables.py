"""Publisher's tables as the code knows them. The migrations make them; a test compares the two."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from servicekit.pg.tables import Timestamp, add_service_tables

metadata = MetaData()
add_service_tables(metadata)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


social_account = Table(
    "social_account",
    metadata,
    _text("organization_id"),
    _text("id"),
    _text("provider"),
    _text("external_account_id"),
    _text("display_name"),
    Column("channels", ARRAY(Text), nullable=False),
    _text("state"),
    Column("credentials", LargeBinary, nullable=False),
    _number("version"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    Column("state_reason", Text, nullable=False, server_default=""),
    Column("error_message", Text, nullable=False, server_default=""),
    Column("disconnect_time", Timestamp),
    PrimaryKeyConstraint("organization_id", "id"),
)

account_gate = Table(
    "account_gate",
    metadata,
    _text("organization_id"),
    _text("social_account_id"),
    Column("connected", Boolean, nullable=False),
    Column("open_job_id", Text),
    Column("provider", Text, nullable=False, server_default=""),
    # Posts may wait in the account's line; see `lines`.
    Column("lined", Boolean, nullable=False, server_default=text("false")),
    # No post goes out before this instant.
    Column("resume_time", Timestamp),
    # When the line is to be looked at; null while it is empty or held, a post is out, or the account is not connected.
    Column("wake_time", Timestamp),
    # The account was connected, disconnected, put on hold or released, and the posts in line do not show it yet.
    Column("relabel", Boolean, nullable=False, server_default=text("false")),
    # A hold covers the account; see `holds`.
    Column("held", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
Index(
    "account_gate_wake",
    account_gate.c.provider,
    account_gate.c.wake_time,
    postgresql_where=text("wake_time is not null"),
)
Index(
    "account_gate_turn",
    account_gate.c.provider,
    account_gate.c.organization_id,
    account_gate.c.wake_time,
    postgresql_where=text("wake_time is not null"),
)
Index(
    "account_gate_relabel",
    account_gate.c.organization_id,
    account_gate.c.social_account_id,
    postgresql_where=text("relabel"),
)

hold = Table(
    "hold",
    metadata,
    _text("organization_id"),
    _text("id"),
    # Both empty for the release of a hold that was never put.
    _text("scope"),
    _text("scope_id"),
    _number("revision"),
    _text("reason"),
    _text("holder"),
    Column("in_force", Boolean, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index(
    "hold_in_force",
    hold.c.organization_id,
    hold.c.create_time,
    hold.c.id,
    postgresql_where=text("in_force"),
)
Index("hold_scope", hold.c.organization_id, hold.c.scope, hold.c.scope_id, postgresql_where=text("in_force"))

# At most one row. Its number grows with each hold that is put.
hold_epoch = Table("hold_epoch", metadata, Column("id", Boolean, primary_key=True), _number("epoch"))

content = Table(
    "content",
    metadata,
    _text("organization_id"),
    _text("draft_id"),
    _number("version"),
    _number("revision"),
    Column("content", LargeBinary, nullable=False),
    _text("content_digest"),
    Column("approved", Boolean, nullable=False),
    _number("withdrawn_below"),
    Column("post_job_ids", ARRAY(Text), nullable=False),
    PrimaryKeyConstraint("organization_id", "draft_id"),
)

post_job = Table(
    "post_job",
    metadata,
    _text("organization_id"),
    _text("id"),
    _text("draft_id"),
    _text("social_account_id"),
    _text("channel"),
    _text("destination"),
    _text("state"),
    _text("state_reason"),
    _number("version"),
    _count("run"),
    _text("slot_id"),
    _number("slot_revision"),
    Column("schedule_time", Timestamp),
    Column("not_after", Timestamp),
    Column("next_action_time", Timestamp),
    _count("max_attempts"),
    _count("attempts"),
    _number("fence"),
    _number("content_revision"),
    _number("withdrawn_below"),
    Column("publish_time", Timestamp),
    _text("external_id"),
    _text("external_url"),
    _text("evidence_kind"),
    _text("error_reason"),
    _text("error_message"),
    Column("last_attempt_time", Timestamp),
    _text("target_month"),
    _text("traceparent"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    # Says which of two slots is newer: a number of Queue's database, 0 for slots of older releases.
    Column("slot_sequence", BigInteger, nullable=False, server_default=text("0")),
    # The revision of the draft that the slot's command knew; an older one is not sent.
    Column("wanted_revision", BigInteger, nullable=False, server_default=text("0")),
    Column("in_doubt", Boolean, nullable=False, server_default=text("false")),
    Column("unknown_until", Timestamp),
    # When the last claim ends, unless the previous release made it: that keeps it in `next_action_time`.
    Column("lease_end", Timestamp),
    # Indexes have this instead of the state, so that a claim, which does not change it, writes no index entry.
    Column(
        "list_state",
        Text,
        Computed("case state when 'SENDING' then 'SCHEDULED' else state end", persisted=True),
        nullable=False,
    ),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint(
        "organization_id", "draft_id", "social_account_id", "channel", "destination", name="post_job_target"
    ),
)
Index("post_job_due", post_job.c.next_action_time, postgresql_where=text("next_action_time is not null"))
# Partial, so that they are for lists alone.
Index(
    "post_job_newest",
    post_job.c.organization_id,
    post_job.c.list_state,
    post_job.c.create_time,
    post_job.c.id,
    postgresql_where=text("list_state <> ''"),
)
Index(
    "post_job_account",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.list_state,
    post_job.c.create_time,
    post_job.c.id,
    postgresql_where=text("list_state <> ''"),
)
Index(
    "post_job_watched",
    post_job.c.list_state,
    post_job.c.schedule_time,
    postgresql_where=text("list_state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')"),
)
Index(
    "post_job_in_line",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.state_reason,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED', 'ACCOUNT_ON_HOLD')"),
)
# Few jobs are ever in doubt.
Index(
    "post_job_in_doubt",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.id,
    postgresql_where=text("in_doubt"),
)

# A row per claim, until all its jobs are settled.
open_claim = Table(
    "open_claim",
    metadata,
    # Its name on the attempts.
    _text("sender"),
    Column("lease_end", Timestamp, nullable=False),
    _count("unsettled"),
    # One element per job.
    Column("organization_ids", ARRAY(Text), nullable=False),
    Column("post_job_ids", ARRAY(Text), nullable=False),
    PrimaryKeyConstraint("sender"),
)
Index("open_claim_end", open_claim.c.lease_end)

attempt = Table(
    "attempt",
    metadata,
    _text("organization_id"),
    _text("post_job_id"),
    _count("run"),
    _count("number"),
    _number("fence"),
    _text("state"),
    _text("idempotency_key"),
    _number("content_revision"),
    _text("content_digest"),
    Column("start_time", Timestamp, nullable=False),
    Column("end_time", Timestamp),
    _text("external_id"),
    _text("error_reason"),
    _text("error_message"),
    Column("sender", Text, nullable=False, server_default=""),
    # Null for attempts that ended otherwise: they are equal to none.
    Column(
        "may_be_out",
        Boolean,
        Computed("case when state in ('SENDING', 'UNKNOWN', 'ACCEPTED') then true end", persisted=True),
    ),
    PrimaryKeyConstraint("organization_id", "post_job_id", "fence"),
    # A job has one attempt that is open or accepted. No column of this changes when an attempt is accepted. It is
    # checked when a transaction ends: the previous release accepts an attempt before it abandons a later one.
    UniqueConstraint(
        "organization_id", "post_job_id", "may_be_out", name="attempt_out", deferrable=True, initially="DEFERRED"
    ),
)

kept_content = Table(
    "kept_content",
    metadata,
    _text("organization_id"),
    _text("post_job_id"),
    _number("revision"),
    Column("content", LargeBinary, nullable=False),
    _text("content_digest"),
    PrimaryKeyConstraint("organization_id", "post_job_id", "revision"),
)

resolution = Table(
    "resolution",
    metadata,
    _text("organization_id"),
    _text("post_job_id"),
    _count("run"),
    _text("outcome"),
    _text("external_id"),
    _text("external_url"),
    _text("resolver"),
    _text("note"),
    Column("create_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "post_job_id", "run"),
)

activity = Table(
    "activity",
    metadata,
    _text("organization_id"),
    _text("social_account_id"),
    _text("id"),
    _text("post_job_id"),
    _text("action"),
    _text("outcome"),
    Column("create_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "social_account_id", "id"),
)
