"""The table of the facts of media."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
)

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

# A row for each URL that was fetched for an organization, until it was not fetched again for a week.
media = Table(
    "media",
    metadata,
    text_column("organization_id"),
    # SHA-256 of the whole URL.
    Column("url_digest", LargeBinary, nullable=False),
    # The URL without its query, which may be a signature.
    text_column("shown_url"),
    # Empty, as the type and the hash, if the file was refused.
    text_column("kind"),
    text_column("content_type"),
    text_column("sha256"),
    number_column("size"),
    count_column("width"),
    count_column("height"),
    Column("duration", Interval),
    count_column("page_count"),
    Column("is_animated", Boolean, nullable=False),
    Column("is_mislabeled", Boolean, nullable=False),
    text_column("error_reason"),
    text_column("error_message"),
    Column("fetch_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "url_digest"),
    CheckConstraint("(sha256 = '') = (error_reason <> '')"),
)
Index("media_fetched", media.c.fetch_time)
