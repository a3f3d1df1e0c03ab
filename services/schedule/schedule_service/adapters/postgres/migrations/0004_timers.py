"""Timers."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    """
    create table timer (
        organization_id text not null,
        id text not null,
        -- The one name by which the scheduler knows the row.
        job_id bigint generated always as identity,
        topic text not null,
        payload bytea not null check (octet_length(payload) <= 65536),
        -- Of a timer that fires once; the others have a cron expression.
        fire_time timestamptz,
        cron text not null,
        time_zone text not null,
        dst_policy text not null check (dst_policy in ('CRON', 'ONCE')),
        repeat_until timestamptz,
        misfire_policy text not null check (misfire_policy in ('FIRE_ONCE', 'SKIP', 'FIRE_ALL')),
        catch_up_interval interval not null check (catch_up_interval between '0' and '1 day'),
        skip_after interval not null check (skip_after between '1 second' and '1 day'),
        auto_remove boolean not null,
        paused boolean not null,
        -- The occurrence in hand; null when there is none any more.
        due_time timestamptz,
        -- When the row is looked at next; null when paused or finished.
        sleep_until timestamptz,
        fence bigint not null,
        attempts integer not null,
        fire_count bigint not null,
        last_fire_time timestamptz,
        last_occurrence_key text not null,
        finish_time timestamptz,
        tzdata_version text not null,
        traceparent text not null,
        version bigint not null check (version >= 1),
        create_time timestamptz not null,
        update_time timestamptz not null,
        -- Listings find all that they ask for in an index.
        primary key (organization_id, id) include (paused, finish_time),
        unique (job_id),
        constraint timer_schedule check ((fire_time is null) = (cron <> '')),
        constraint timer_repeat check (repeat_until is null or cron <> ''),
        constraint timer_finish check ((finish_time is not null) = (due_time is null)),
        constraint timer_sleep check (sleep_until is null or (due_time is not null and not paused))
    ) with (fillfactor = 70)
    """,
    "create index timer_due on timer (sleep_until, job_id) where sleep_until is not null",
    "create index timer_finished on timer (finish_time) where finish_time is not null",
    "create index timer_by_topic on timer (organization_id, topic, id) include (paused, finish_time)",
    """
    create index timer_idle on timer (organization_id, id) include (paused, finish_time)
        where paused or finish_time is not null
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
