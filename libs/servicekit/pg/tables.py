"""The tables of every service's database."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP

Timestamp = TIMESTAMP(timezone=True)


def add_service_tables(metadata: MetaData) -> None:
    """Adds the outbox with its eras and turns, inbox, request_ledger and dead_letter.

    A change of a table here is a migration in every service.
    """
    _add_outbox(metadata)
    _add_inbox(metadata)
    _add_request_ledger(metadata)
    _add_dead_letters(metadata)


def _add_outbox(metadata: MetaData) -> None:
    outbox = Table(
        "outbox",
        metadata,
        Column("position", BigInteger, Identity(always=True), primary_key=True),
        Column("event_id", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("payload", LargeBinary, nullable=False),
        Column("create_time", Timestamp, nullable=False),
        # The mark, era and sequence; null until the stream has acknowledged the event.
        Column("stream_time", Timestamp),
        Column("stream_sequence", BigInteger),
    )
    Index("outbox_unpublished", outbox.c.position, postgresql_where=text("stream_sequence is null"))
    Index(
        "outbox_published",
        outbox.c.stream_time,
        outbox.c.stream_sequence,
        postgresql_where=text("stream_sequence is not null"),
    )

    Table(
        "outbox_era",
        metadata,
        # The stream_time of the rows that were marked in this era.
        Column("era_time", Timestamp, primary_key=True),
        # When the stream was created, as the server said at the beginning of the era.
        Column("stream_created", Timestamp, nullable=False),
        # The highest sequence that the stream still has; null while it has lost nothing.
        Column("kept", BigInteger),
        # The sequence up to which lost rows have been published again; null if none is left.
        Column("healed", BigInteger),
        Column("close_time", Timestamp),
    )

    Table(
        "outbox_turn",
        metadata,
        Column("name", Text, primary_key=True),
        Column("holder", Text, nullable=False),
        Column("end_time", Timestamp, nullable=False),
    )


def _add_inbox(metadata: MetaData) -> None:
    inbox = Table(
        "inbox",
        metadata,
        Column("consumer", Text, nullable=False),
        Column("event_id", Text, nullable=False),
        Column("receive_time", Timestamp, nullable=False),
        PrimaryKeyConstraint("consumer", "event_id"),
    )
    Index("inbox_age", inbox.c.receive_time)


def _add_request_ledger(metadata: MetaData) -> None:
    ledger = Table(
        "request_ledger",
        metadata,
        Column("organization_id", Text, nullable=False),
        Column("method", Text, nullable=False),
        Column("request_id", Text, nullable=False),
        Column("request_digest", LargeBinary, nullable=False),
        # No longer written; kept so that older processes can run beside newer ones.
        Column("intention", LargeBinary),
        # Null while the call is in progress.
        Column("response", LargeBinary),
        Column("create_time", Timestamp, nullable=False),
        PrimaryKeyConstraint("organization_id", "method", "request_id"),
    )
    Index("request_ledger_age", ledger.c.create_time)


def _add_dead_letters(metadata: MetaData) -> None:
    letters = Table(
        "dead_letter",
        metadata,
        Column("id", Text, primary_key=True),
        Column("consumer", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("payload", LargeBinary, nullable=False),
        Column("create_time", Timestamp, nullable=False),
        # Empty if the message could not be read.
        Column("organization_id", Text, nullable=False, server_default=""),
        Column("state", Text, nullable=False, server_default="OPEN"),
        Column("redrives", Integer, nullable=False, server_default="0"),
        Column("redrive_time", Timestamp),
        # When it was redriven or archived; null while it is open.
        Column("end_time", Timestamp),
        CheckConstraint("state in ('OPEN', 'REDRIVEN', 'ARCHIVED')", name="dead_letter_state"),
        CheckConstraint("(end_time is null) = (state = 'OPEN')", name="dead_letter_end"),
    )
    Index("dead_letter_age", letters.c.create_time, letters.c.id)
    Index(
        "dead_letter_open",
        letters.c.consumer,
        letters.c.create_time,
        letters.c.id,
        postgresql_where=text("state = 'OPEN'"),
    )
    Index("dead_letter_ended", letters.c.end_time, postgresql_where=text("end_time is not null"))
