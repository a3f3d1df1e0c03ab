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


# At ten million rows a day the default (a fifth of the table) would leave millions of dead rows.
_VACUUM = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0"
_V2 = (
    """
    alter table dead_letter
        add column organization_id text not null default '',
        add column state text not null default 'OPEN',
        add column redrives integer not null default 0,
        add column redrive_time timestamptz,
        add column end_time timestamptz,
        add constraint dead_letter_state check (state in ('OPEN', 'REDRIVEN', 'ARCHIVED')),
        add constraint dead_letter_end check ((end_time is null) = (state = 'OPEN'))
    """,
    "drop index dead_letter_age",
    "create index dead_letter_age on dead_letter (create_time, id)",
    "create index dead_letter_open on dead_letter (consumer, create_time, id) where state = 'OPEN'",
    "create index dead_letter_ended on dead_letter (end_time) where end_time is not null",
    *(f"alter table {table} set ({_VACUUM})" for table in ("outbox", "inbox", "request_ledger")),
)
_V3 = (
    """
    create table outbox_era (
        era_time timestamptz primary key,
        stream_created timestamptz not null,
        kept bigint,
        healed bigint,
        close_time timestamptz
    )
    """,
    """
    create table outbox_turn (
        name text primary key,
        holder text not null,
        end_time timestamptz not null
    )
    """,
)
# A row of 50 events is 25 kB: to compress it cost 2.3 us an event, to write it as it is costs 0.4 kB of WAL an event.
_V4 = ("alter table outbox alter column payload set storage external",)


def create_v1() -> None:
    for statement in _V1:
        op.execute(statement)


def upgrade_to_v2() -> None:
    """Adds the state of dead letters, and vacuums the busiest tables more often."""
    for statement in _V2:
        op.execute(statement)


def upgrade_to_v3() -> None:
    """Adds eras for the marks of outbox rows, and turns of processes at the outbox."""
    for statement in _V3:
        op.execute(statement)


def upgrade_to_v4() -> None:
    """Stores new payloads of the outbox uncompressed."""
    for statement in _V4:
        op.execute(statement)
