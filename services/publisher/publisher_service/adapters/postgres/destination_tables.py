"""The table of destinations."""

from sqlalchemy import Boolean, CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, text

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

# A row for each destination that is not empty, from the first answer about it or the first request to deactivate it.
destination = Table(
    "destination",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    text_column("channel"),
    text_column("destination"),
    text_column("state"),
    text_column("state_reason"),
    # Sends that the provider refused since the last one that went out.
    count_column("failures"),
    text_column("error_message"),
    Column("last_success_time", Timestamp),
    Column("last_failure_time", Timestamp),
    Column("deactivate_time", Timestamp),
    # Counts the changes of state.
    number_column("version"),
    # It was activated, and posts that waited for that may still be BLOCKED.
    Column("releasing", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("organization_id", "social_account_id", "channel", "destination"),
    CheckConstraint("destination <> ''"),
    CheckConstraint("(state = 'INACTIVE') = (deactivate_time is not null)"),
)
Index(
    "destination_inactive",
    destination.c.organization_id,
    destination.c.social_account_id,
    destination.c.channel,
    destination.c.destination,
    postgresql_where=text("state = 'INACTIVE'"),
)
Index(
    "destination_releasing",
    destination.c.organization_id,
    destination.c.social_account_id,
    destination.c.channel,
    destination.c.destination,
    postgresql_where=text("releasing"),
)
