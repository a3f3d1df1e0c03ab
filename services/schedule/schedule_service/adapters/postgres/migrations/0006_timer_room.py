"""Room for timers, and those that could not be read."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS = (
    """
    create table timer_room (
        organization_id text primary key,
        -- So many timers may be made before those that have not finished are counted again.
        room integer not null check (room >= 0)
    ) with (fillfactor = 50)
    """,
    # Few, if any: the engine put them to rest.
    """
    create index timer_faulty on timer (organization_id, id)
        where sleep_until is null and not paused and finish_time is null
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
