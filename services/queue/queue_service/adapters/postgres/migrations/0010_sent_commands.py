"""Where the stream has stored the commands that were sent to it."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    """
    create table sent_commands (
        id bigint generated always as identity primary key,
        losses bigint not null,
        first_sequence bigint not null,
        last_sequence bigint not null,
        organization_ids text[] not null,
        slot_ids text[] not null,
        emissions integer[] not null,
        channels text[] not null,
        destinations text[] not null,
        sequences bigint[] not null,
        constraint sent_commands_range check (first_sequence >= 1 and first_sequence <= last_sequence),
        constraint sent_commands_lengths check (
            cardinality(sequences) >= 1
            and cardinality(sequences) = cardinality(organization_ids)
            and cardinality(sequences) = cardinality(slot_ids)
            and cardinality(sequences) = cardinality(emissions)
            and cardinality(sequences) = cardinality(channels)
            and cardinality(sequences) = cardinality(destinations)
        )
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
