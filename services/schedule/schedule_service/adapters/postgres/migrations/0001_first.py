"""Account schedules."""

from alembic import op

from servicekit.pg.migrations.service_tables import create_v1

revision = "0001"
down_revision = None

ACCOUNT_SCHEDULE = """
    create table account_schedule (
        organization_id text not null,
        social_account_id text not null,
        name text not null,
        time_zone text not null,
        weekly_slots smallint[] not null,
        max_posts_per_day integer not null check (max_posts_per_day >= 0),
        enabled boolean not null,
        version bigint not null check (version >= 1),
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, social_account_id),
        -- Minutes of the week.
        constraint account_schedule_slots check (0 <= all (weekly_slots) and 10080 > all (weekly_slots))
    )
"""


def upgrade() -> None:
    create_v1()
    op.execute(ACCOUNT_SCHEDULE)
