"""Limits at send time: windows, spacing, daily caps, and posts that are parked until one lets them go."""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = (
    # What Schedule has announced. The row of a deleted schedule stays, so that an older event does not bring it back.
    """
    create table account_schedule (
        organization_id text not null,
        social_account_id text not null,
        version bigint not null,
        deleted boolean not null,
        time_zone text not null,
        enabled boolean not null,
        -- The send window: 0 is Sunday; null without a window. An end that is null is the end of the day.
        window_days integer[],
        window_start time,
        window_end time,
        min_spacing interval,
        primary key (organization_id, social_account_id)
    )
    """,
    """
    alter table account_gate
        add column enabled boolean not null default true,
        add column open_from timestamptz,
        add column open_until timestamptz,
        add column limited boolean not null default false,
        add column post_spacing interval,
        add column last_post_time timestamptz,
        add column last_outreach_time timestamptz
    """,
    """
    create table account_action (
        organization_id text not null,
        social_account_id text not null,
        action text not null,
        -- The account's own cap; null means the default.
        cap integer check (cap >= 0),
        used integer not null default 0 check (used >= 0),
        -- The local day whose use is counted; null until a claim asks.
        local_date date,
        day_start timestamptz,
        day_end timestamptz,
        primary key (organization_id, social_account_id, action)
    )
    """,
    # Attempts that count for a daily cap, until they are proven to have had no effect.
    """
    create table reservation (
        organization_id text not null,
        post_job_id text not null,
        fence bigint not null,
        run integer not null,
        social_account_id text not null,
        action text not null,
        reserve_time timestamptz not null,
        primary key (organization_id, post_job_id, fence)
    )
    """,
    "create index reservation_use on reservation (organization_id, social_account_id, action, reserve_time)",
    "create index reservation_age on reservation (reserve_time)",
    "alter table post_job add column parked_on text not null default '', add column expected_time timestamptz",
    """
    create index post_job_parked on post_job (organization_id, social_account_id, parked_on, schedule_time, id)
    where parked_on <> ''
    """,
    """
    create table parked_line (
        organization_id text not null,
        social_account_id text not null,
        parked_on text not null,
        wake_time timestamptz not null,
        primary key (organization_id, social_account_id, parked_on)
    )
    """,
    "create index parked_line_wake on parked_line (wake_time)",
    # The limits of one organization that end together keep no other waiting.
    "create index parked_line_turn on parked_line (organization_id, wake_time)",
    "drop index post_job_in_line",
    # The condition of the previous release implies this one.
    """
    create index post_job_in_line on post_job (organization_id, social_account_id, state_reason, schedule_time, id)
    where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED', 'ACCOUNT_ON_HOLD', 'ACCOUNT_DISABLED', 'SEND_WINDOW')
    """,
    # By time: the log of an account is read by time.
    """
    alter table activity
        add column run integer not null default 0,
        drop constraint activity_outcome_check,
        add constraint activity_outcome_check
            check (outcome in ('SUCCESS', 'FAILED', 'RATE_LIMITED', 'UNKNOWN', 'ABSENT')),
        drop constraint activity_pkey,
        add primary key (organization_id, social_account_id, create_time, id)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
