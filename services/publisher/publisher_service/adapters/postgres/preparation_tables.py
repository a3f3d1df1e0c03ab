"""The tables of preparations, and of the quotas of providers."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from publisher_service.adapters.postgres.schema import metadata, text_column
from servicekit.pg.tables import Timestamp

# From then on no claim publishes what was prepared. It is the expression of an index, word for word.
LAST_USE: Final = "coalesce(expire_time, begin_time, '-infinity')"

# At most one row for each job of a provider that prepares posts.
preparation = Table(
    "preparation",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    text_column("social_account_id"),
    text_column("provider"),
    text_column("state"),
    # Names what the provider has prepared, of which bytes, for which run, and when that began.
    Column("handle", Text, nullable=False, server_default=""),
    Column("content_digest", Text, nullable=False, server_default=""),
    Column("run", Integer, nullable=False, server_default=text("0")),
    Column("begin_time", Timestamp),
    # The handle is not used from this instant on.
    Column("expire_time", Timestamp),
    # When a process is to look at it; a lease while one does. Null while nothing is to be done.
    Column("next_time", Timestamp),
    # Counts the processes that have taken it.
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("error_reason", Text, nullable=False, server_default=""),
    Column("error_message", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("organization_id", "post_job_id"),
    CheckConstraint("state not in ('PROCESSING', 'READY') or handle <> ''"),
    CheckConstraint("state <> 'READY' or expire_time is not null"),
)
Index(
    "preparation_due",
    preparation.c.provider,
    preparation.c.organization_id,
    preparation.c.next_time,
    postgresql_where=text("next_time is not null"),
)
Index("preparation_next", preparation.c.next_time, postgresql_where=text("next_time is not null"))
Index("preparation_age", text(LAST_USE), postgresql_where=text("next_time is null"), _table=preparation)

# Until then no process sends to the provider.
provider_quota = Table(
    "provider_quota",
    metadata,
    text_column("provider"),
    Column("closed_until", Timestamp, nullable=False),
    PrimaryKeyConstraint("provider"),
)
