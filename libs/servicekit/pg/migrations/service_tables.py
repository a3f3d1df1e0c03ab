"""Migration steps for the tables of `servicekit.pg.tables`, to be called by each service's own migrations."""

from alembic import op

_V1 = (
    """
    create table outbox (
        position bigint generated always as identity primary key,
        event_id text not null,
        subject text not null,
        payload bytea not null,
        create_time timestamptz not null,
        stream_time timestamptz,
        stream_sequence bigint
    )
    """,
    "create index outbox_unpublished on outbox (position) where stream_sequence is null",
    "create index outbox_published on outbox (stream_time, stream_sequence) where stream_sequence is not null",
    """
    create table inbox (
        consumer text not null,
        event_id text not null,
        receive_time timestamptz not null,
        primary key (consumer, event_id)
    )
    """,
    "create index inbox_age on inbox (receive_time)",
    """
    create table request_ledger (
        organization_id text not null,
        method text not null,
        request_id text not null,
        request_digest bytea not null,
        intention bytea,
        response bytea,
        create_time timestamptz not null,
        primary key (organization_id, method, request_id)
    )
    """,
    "create index request_ledger_age on request_ledger (create_time)",
    """
    create table dead_letter (
        id text primary key,
        consumer text not null,
        subject text not null,
        reason text not null,
        payload bytea not null,
        create_time timestamptz not null
    )
    """,
    "create index dead_letter_age on dead_letter (create_time)",
)


def create_v1() -> None:
    for statement in _V1:
        op.execute(statement)
