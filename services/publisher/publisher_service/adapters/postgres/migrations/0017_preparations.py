"""Posts that a provider prepares before they are sent, and what providers say about their quotas."""

from alembic import op

revision = "0017"
down_revision = "0016"

STATEMENTS: tuple[str, ...] = (
    """
    create table preparation (
        organization_id text not null,
        post_job_id text not null,
        social_account_id text not null,
        provider text not null,
        state text not null,
        -- Names what the provider has prepared, of which bytes, for which run, and when that began.
        handle text not null default '',
        content_digest text not null default '',
        run integer not null default 0,
        begin_time timestamptz,
        -- The handle is not used from this instant on.
        expire_time timestamptz,
        -- When a process is to look at it; a lease while one does. Null while nothing is to be done.
        next_time timestamptz,
        -- Counts the processes that have taken it.
        fence bigint not null default 0,
        failures integer not null default 0,
        error_reason text not null default '',
        error_message text not null default '',
        primary key (organization_id, post_job_id),
        check (state not in ('PROCESSING', 'READY') or handle <> ''),
        check (state <> 'READY' or expire_time is not null)
    )
    """,
    """
    create index preparation_due on preparation (provider, organization_id, next_time) where next_time is not null
    """,
    # Tells whether any is due.
    "create index preparation_next on preparation (next_time) where next_time is not null",
    # By the time from which on it is of no use: finds those that are dropped.
    """
    create index preparation_age on preparation (coalesce(expire_time, begin_time, '-infinity')) where next_time is null
    """,
    # Tells whether any account has a provider that prepares posts.
    "create index social_account_provider on social_account (provider)",
    # Until then no process sends to the provider: its answers have said that the quota of the application is used up.
    "create table provider_quota (provider text primary key, closed_until timestamptz not null)",
    # By name, the channels on which the provider takes nothing more, and until when.
    "alter table account_gate add column closed_channels jsonb",
    # Requests in a row that found no provider.
    "alter table account_gate add column failures integer not null default 0",
    """
    create index account_gate_failures on account_gate (provider, organization_id, social_account_id)
    where failures >= 3
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
