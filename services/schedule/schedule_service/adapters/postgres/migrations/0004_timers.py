"""Timers."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    """
    create table timer (
        organization_id text not null,
        id text not null,
        job_id bigint generated always as identity,
        topic text not null,
        payload bytea not null,
        -- Empty: it fires once.
        cron text not null,
        time_zone text not null,
        dst_policy text not null check (dst_policy in ('CRON', 'ONCE')),
        repeat_until timestamptz,
        misfire_policy text not null check (misfire_policy in ('FIRE_ONCE', 'SKIP', 'FIRE_ALL')),
        catch_up_interval interval not null,
        skip_after interval not null,
        auto_remove boolean not null,
        paused boolean not null,
        due_time timestamptz,
        sleep_until timestamptz,
        fence bigint not null,
        attempts integer not null,
        fire_count bigint not null,
        last_fire_time timestamptz,
        last_occurrence_key text not null,
        finish_time timestamptz,
        tzdata_version text not null,
        version bigint not null check (version >= 1),
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id),
        unique (job_id)
    ) with (fillfactor = 70)
    """,
    "create index timer_due on timer (sleep_until, job_id) where sleep_until is not null",
    "create index timer_finished on timer (finish_time) where finish_time is not null",
    "create index timer_by_topic on timer (organization_id, topic, id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
