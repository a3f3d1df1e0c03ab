"""Holds of organizations, brands, campaigns and providers, and holds that end by themselves."""

from alembic import op

revision = "0016"
down_revision = "0015"

STATEMENTS: tuple[str, ...] = (
    # When the hold ends by itself.
    "alter table hold add column end_time timestamptz",
    "create index hold_end on hold (end_time) where in_force and end_time is not null",
    "drop index hold_scope",
    "create index hold_scope on hold (organization_id, scope, scope_id, create_time, id) where in_force",
    # For lists by scope alone: its condition keeps it from those by scope and id.
    "create index hold_kind on hold (organization_id, scope, create_time, id) where in_force and scope <> ''",
    # For claims. While no such hold is in force, it is empty.
    """
    create index hold_wide on hold (organization_id, scope, scope_id)
    where in_force and scope in ('ORGANIZATION', 'PROVIDER', 'BRAND', 'CAMPAIGN')
    """,
    # Holds that have ended, until what they kept back is freed.
    """
    create table hold_release (
        organization_id text not null,
        scope text not null,
        scope_id text not null,
        next_time timestamptz not null,
        primary key (organization_id, scope, scope_id)
    )
    """,
    "create index hold_release_next on hold_release (next_time)",
    # The verdict under which a line stands still because of a hold that covers more than the account.
    "alter table account_gate add column frozen text not null default ''",
    """
    create index account_gate_frozen on account_gate (organization_id, frozen, provider, social_account_id)
    where frozen <> ''
    """,
    "alter table content add column brand_id text not null default ''",
    "alter table content add column campaign_id text not null default ''",
    "alter table post_job add column brand_id text not null default ''",
    "alter table post_job add column campaign_id text not null default ''",
    """
    create index post_job_brand_held on post_job (organization_id, brand_id, schedule_time, id)
    where state_reason = 'BRAND_ON_HOLD'
    """,
    """
    create index post_job_campaign_held on post_job (organization_id, campaign_id, schedule_time, id)
    where state_reason = 'CAMPAIGN_ON_HOLD'
    """,
    "drop index post_job_in_line",
    # The condition of the previous release implies this one.
    """
    create index post_job_in_line on post_job (organization_id, social_account_id, state_reason, schedule_time, id)
    where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED', 'ORGANIZATION_ON_HOLD', 'PROVIDER_ON_HOLD',
        'ACCOUNT_ON_HOLD', 'ACCOUNT_DISABLED', 'SEND_WINDOW')
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
