"""Schedule rules."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    """
    create table schedule_rule (
        organization_id text not null,
        id text not null,
        brand_id text not null,
        name text not null,
        time_zone text not null,
        weekly_slots smallint[] not null,
        rrule text not null,
        start_minute smallint,
        start_date date,
        end_date date,
        excluded_dates date[] not null,
        channels text[] not null,
        category_id text not null,
        asset_policy text not null check (asset_policy in ('OPTIONAL', 'REQUIRED', 'NONE')),
        enabled boolean not null,
        tzdata_version text not null,
        version bigint not null check (version >= 1),
        create_time timestamptz not null,
        update_time timestamptz not null,
        delete_time timestamptz,
        primary key (organization_id, id),
        -- Minutes of the week.
        constraint schedule_rule_slots check (0 <= all (weekly_slots) and 10080 > all (weekly_slots)),
        constraint schedule_rule_recurrence check ((weekly_slots = '{}') <> (rrule = '')),
        constraint schedule_rule_start check (
            (start_minute is null or (rrule <> '' and start_minute between 0 and 1439))
            and (rrule = '' or start_date is not null)
        ),
        constraint schedule_rule_dates check (end_date >= start_date),
        constraint schedule_rule_channels check (cardinality(channels) >= 1)
    )
    """,
    "create index schedule_rule_by_brand on schedule_rule (organization_id, brand_id, id) where delete_time is null",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
