"""The tables of the life of credentials, the journal of their refreshes, and visits to providers. None has a secret."""

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

# A row for each account that was connected by a release that knows this table.
credential = Table(
    "credential",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    text_column("provider"),
    # Grows when the account is connected or disconnected, and with each refresh.
    number_column("generation"),
    Column("expire_time", Timestamp),
    Column("refresh_expire_time", Timestamp),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("is_refreshable", Boolean, nullable=False),
    Column("refresh_time", Timestamp),
    # When a process is to look at it, to refresh, warn or disconnect; the end of the lease while one does.
    Column("next_time", Timestamp),
    Column("lease_end", Timestamp),
    # Counts the times that a process has taken it.
    number_column("number"),
    count_column("failures"),
    # The first of these; another release may leave one behind when there are none.
    Column("failing_since", Timestamp),
    text_column("error"),
    # The provider will not refresh this generation.
    Column("is_refused", Boolean, nullable=False),
    # The provider has refused the access token, and posts wait for the refresh.
    Column("is_urgent", Boolean, nullable=False),
    # This generation came because the provider had refused the one before.
    Column("is_forced", Boolean, nullable=False),
    Column("is_warned", Boolean, nullable=False),
    Column("last_refresh_time", Timestamp),
    # Digests of the sealed credentials that this row is about, and of those that a refresh has replaced. The former
    # differs once a release has connected the account that does not know this table.
    Column("sealed_digest", LargeBinary, nullable=False),
    Column("replaced_digest", LargeBinary),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
Index(
    "credential_due",
    credential.c.provider,
    credential.c.organization_id,
    credential.c.next_time,
    postgresql_where=text("next_time is not null"),
)
Index("credential_next", credential.c.next_time, postgresql_where=text("next_time is not null"))
# Accounts that only a person can keep connected.
Index(
    "credential_warned",
    credential.c.organization_id,
    credential.c.social_account_id,
    postgresql_where=text("is_warned and next_time is not null"),
)

# A row for each refresh, committed before its request.
credential_refresh = Table(
    "credential_refresh",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    number_column("number"),
    number_column("generation"),
    # INTENT, and then DONE, REFUSED or FAILED; INTENT for good if the process died inside the call.
    text_column("state"),
    # The process that has asked.
    text_column("process"),
    Column("begin_time", Timestamp, nullable=False),
    Column("end_time", Timestamp),
    text_column("error"),
    PrimaryKeyConstraint("organization_id", "social_account_id", "number"),
)
Index("credential_refresh_age", credential_refresh.c.begin_time)

# Visits to providers that may still end with an account.
connect_session = Table(
    "connect_session",
    metadata,
    text_column("organization_id"),
    # Of the state, which is a secret until the visit ends.
    Column("state_digest", LargeBinary, nullable=False),
    text_column("state"),
    text_column("provider"),
    text_column("redirect_uri"),
    text_column("social_account_id"),
    text_column("display_name"),
    Column("channels", ARRAY(Text), nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("expire_time", Timestamp, nullable=False),
    Column("exchange_end", Timestamp),
    # The verifier of the code, then what was granted; empty once the visit has ended.
    Column("sealed", LargeBinary, nullable=False),
    PrimaryKeyConstraint("organization_id", "state_digest"),
    CheckConstraint("state <> 'ENDED' or sealed = ''"),
)
Index("connect_session_expire", connect_session.c.expire_time)
Index("connect_session_account", connect_session.c.organization_id, connect_session.c.social_account_id)
