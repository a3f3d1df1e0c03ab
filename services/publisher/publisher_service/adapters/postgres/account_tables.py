"""The tables of accounts, their gates, and holds."""

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher_service.adapters.postgres.schema import metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

social_account = Table(
    "social_account",
    metadata,
    text_column("organization_id"),
    text_column("id"),
    text_column("provider"),
    text_column("external_account_id"),
    text_column("display_name"),
    Column("channels", ARRAY(Text), nullable=False),
    text_column("state"),
    Column("credentials", LargeBinary, nullable=False),
    number_column("version"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    Column("state_reason", Text, nullable=False, server_default=""),
    Column("error_message", Text, nullable=False, server_default=""),
    Column("disconnect_time", Timestamp),
    # By name; never a secret.
    Column("settings", JSONB, nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index("social_account_provider", social_account.c.provider)
Index(
    "social_account_external",
    social_account.c.organization_id,
    social_account.c.provider,
    social_account.c.external_account_id,
)
Index("social_account_anywhere", social_account.c.provider, social_account.c.external_account_id)

account_gate = Table(
    "account_gate",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
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
    # The verdict under which the line stands still because of a hold that covers more than the account; see `freezing`.
    Column("frozen", Text, nullable=False, server_default=""),
    # The user's switch in Schedule.
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    # The present or next opening of the send window, or one that has passed; null without a window.
    Column("open_from", Timestamp),
    Column("open_until", Timestamp),
    # Posts, too, have a daily cap: `account_action` has a row for them.
    Column("limited", Boolean, nullable=False, server_default=text("false")),
    # The least time between two posts.
    Column("post_spacing", Interval),
    # The end of the last attempt that has or may have had effect.
    Column("last_post_time", Timestamp),
    Column("last_outreach_time", Timestamp),
    # Requests in a row that found no provider.
    Column("failures", Integer, nullable=False, server_default=text("0")),
    # By name, the channels on which the provider takes nothing more, and until when; null for nearly all accounts.
    Column("closed_channels", JSONB),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
Index(
    "account_gate_failures",
    account_gate.c.provider,
    account_gate.c.organization_id,
    account_gate.c.social_account_id,
    postgresql_where=text("failures >= 3"),
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
Index(
    "account_gate_frozen",
    account_gate.c.organization_id,
    account_gate.c.frozen,
    account_gate.c.provider,
    account_gate.c.social_account_id,
    postgresql_where=text("frozen <> ''"),
)

hold = Table(
    "hold",
    metadata,
    text_column("organization_id"),
    text_column("id"),
    # Both empty for the release of a hold that was never put.
    text_column("scope"),
    text_column("scope_id"),
    number_column("revision"),
    text_column("reason"),
    text_column("holder"),
    Column("in_force", Boolean, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    # When it ends by itself.
    Column("end_time", Timestamp),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index(
    "hold_in_force",
    hold.c.organization_id,
    hold.c.create_time,
    hold.c.id,
    postgresql_where=text("in_force"),
)
Index(
    "hold_scope",
    hold.c.organization_id,
    hold.c.scope,
    hold.c.scope_id,
    hold.c.create_time,
    hold.c.id,
    postgresql_where=text("in_force"),
)
# For lists by scope alone: its condition keeps it from those by scope and id.
Index(
    "hold_kind",
    hold.c.organization_id,
    hold.c.scope,
    hold.c.create_time,
    hold.c.id,
    postgresql_where=text("in_force and scope <> ''"),
)
Index("hold_end", hold.c.end_time, postgresql_where=text("in_force and end_time is not null"))
# For claims. While no such hold is in force, it is empty.
Index(
    "hold_wide",
    hold.c.organization_id,
    hold.c.scope,
    hold.c.scope_id,
    postgresql_where=text("in_force and scope in ('ORGANIZATION', 'PROVIDER', 'BRAND', 'CAMPAIGN')"),
)

# What was covered by a hold that has ended, until all its posts are freed.
hold_release = Table(
    "hold_release",
    metadata,
    text_column("organization_id"),
    text_column("scope"),
    text_column("scope_id"),
    # When the next page of posts is freed.
    Column("next_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "scope", "scope_id"),
)
Index("hold_release_next", hold_release.c.next_time)

# At most one row. Its number grows with each hold that is put.
hold_epoch = Table("hold_epoch", metadata, Column("id", Boolean, primary_key=True), number_column("epoch"))
