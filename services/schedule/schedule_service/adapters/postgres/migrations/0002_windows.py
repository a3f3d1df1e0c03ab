"""Send windows, spacing and deletion of account schedules, and the slots that lie ahead."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    """
    alter table account_schedule
        -- The defaults are for replicas of the release before.
        -- 0 for Sunday to 6 for Saturday, ascending; empty: no window. Minutes of the day.
        add column window_days smallint[] not null default '{}',
        add column window_start smallint not null default 0,
        add column window_end smallint not null default 1440,
        add column min_spacing interval not null default '0',
        add column tzdata_version text not null default '',
        add column delete_time timestamptz,
        -- Slots of the account may follow another zone than this, which it had before, or had when it was deleted.
        add column slots_elsewhere boolean not null default false,
        add constraint account_schedule_window check (
            0 <= all (window_days) and 6 >= all (window_days)
            and 0 <= window_start and window_start < window_end and window_end <= 1440
        ),
        add constraint account_schedule_spacing check (min_spacing between '0' and '1 day')
    """,
    """
    create index account_schedule_live on account_schedule (organization_id, social_account_id)
    where delete_time is null
    """,
    """
    create table upcoming_slot (
        organization_id text not null,
        slot_id text not null,
        social_account_id text not null,
        revision bigint not null,
        schedule_time timestamptz not null,
        -- What the slot means on the wall. Without a zone: nobody said. Without a time: it is an instant.
        time_zone text not null default '',
        nominal_local_time timestamp,
        primary key (organization_id, slot_id)
    )
    """,
    "create index upcoming_slot_by_account on upcoming_slot (organization_id, social_account_id, schedule_time)",
    "create index upcoming_slot_age on upcoming_slot (schedule_time)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
