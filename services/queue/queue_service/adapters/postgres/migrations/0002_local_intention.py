"""What a slot means on the wall, by which law its instant was found, and accounts whose schedule is gone."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    """
    alter table slot
        -- What the weekly slot asked for; null for a time of the caller's choice, and for slots of the release before.
        add column nominal_local_time timestamp,
        -- The release of the IANA database by which the slot's instant and its time on the wall agree; null: unknown.
        add column tzdata_version text collate "C",
        add constraint slot_nominal check (
            nominal_local_time is null or (origin = 'QUEUE' and time_zone <> '')
        )
    """,
    """
    alter table account_queue
        add column tzdata_version text collate "C" not null default '',
        add column slots_behind boolean not null default false,
        drop constraint account_queue_schedule,
        -- A schedule that was deleted leaves its version, so that older news of it is known to be old.
        add constraint account_queue_schedule check (
            schedule_version >= 0 and max_posts_per_day >= 0 and (schedule_version > 0 or time_zone = '')
            and (time_zone <> '' or not enabled)
        )
    """,
    "create index account_queue_behind on account_queue (tzdata_version) where slots_behind",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
