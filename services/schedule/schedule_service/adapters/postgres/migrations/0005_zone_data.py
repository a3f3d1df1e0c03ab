"""The law of each zone in use, as it was when times were announced."""

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = (
    """
    create table zone_data (
        tzdata_version text not null,
        time_zone text not null,
        -- The compiled zone (TZif) of that release.
        data bytea not null,
        primary key (tzdata_version, time_zone)
    )
    """,
    # After a change of the law few zones of many have moved: their rows are found without those of all others.
    """
    create index account_schedule_by_law on account_schedule (
        tzdata_version, time_zone, organization_id, social_account_id
    ) where delete_time is null
    """,
    """
    create index account_schedule_elsewhere on account_schedule (organization_id, social_account_id)
        where slots_elsewhere
    """,
    """
    create index schedule_rule_by_law on schedule_rule (tzdata_version, time_zone, organization_id, id)
        where delete_time is null
    """,
    # What fires once, or has fired for the last time, follows no law.
    """
    create index timer_by_law on timer (tzdata_version, time_zone, organization_id, id)
        where cron <> '' and due_time is not null
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
