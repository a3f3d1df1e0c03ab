"""Destinations and their health."""

from alembic import op

revision = "0020"
down_revision = "0019"

STATEMENTS: tuple[str, ...] = (
    """
    create table destination (
        organization_id text not null,
        social_account_id text not null,
        channel text not null,
        -- Posts to the feed of the account itself have no row.
        destination text not null check (destination <> ''),
        state text not null,
        state_reason text not null,
        -- Sends that the provider refused since the last one that went out.
        failures integer not null,
        error_message text not null,
        last_success_time timestamptz,
        last_failure_time timestamptz,
        deactivate_time timestamptz,
        version bigint not null,
        -- It was activated, and posts that waited for that may still be BLOCKED.
        releasing boolean not null default false,
        primary key (organization_id, social_account_id, channel, destination),
        check ((state = 'INACTIVE') = (deactivate_time is not null))
    )
    """,
    """
    create index destination_inactive on destination (organization_id, social_account_id, channel, destination)
    where state = 'INACTIVE'
    """,
    """
    create index destination_releasing on destination (organization_id, social_account_id, channel, destination)
    where releasing
    """,
    """
    create index post_job_destination_inactive
    on post_job (organization_id, social_account_id, channel, destination, schedule_time, id)
    where state_reason = 'DESTINATION_INACTIVE'
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
