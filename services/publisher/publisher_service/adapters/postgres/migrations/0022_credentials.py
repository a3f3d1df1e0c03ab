"""The life of credentials: their refreshes with a journal, visits to providers, and settings of accounts."""

from alembic import op

revision = "0022"
down_revision = "0021"

STATEMENTS: tuple[str, ...] = (
    # By name; never a secret.
    "alter table social_account add column settings jsonb not null default '{}'",
    """
    create index social_account_external on social_account (organization_id, provider, external_account_id)
    """,
    """
    create table credential (
        organization_id text not null,
        social_account_id text not null,
        provider text not null,
        -- Grows when the account is connected or disconnected, and with each refresh.
        generation bigint not null,
        expire_time timestamptz,
        refresh_expire_time timestamptz,
        scopes text[] not null,
        is_refreshable boolean not null,
        refresh_time timestamptz,
        -- When a process is to look at it, to refresh, warn or disconnect; the end of the lease while one does.
        next_time timestamptz,
        lease_end timestamptz,
        -- Counts the times that a process has taken it.
        number bigint not null,
        failures integer not null,
        error text not null,
        -- The provider will not refresh this generation.
        is_refused boolean not null,
        -- The provider has refused the access token, and posts wait for the refresh.
        is_urgent boolean not null,
        -- This generation came because the provider had refused the one before.
        is_forced boolean not null,
        is_warned boolean not null,
        last_refresh_time timestamptz,
        -- Digests of the sealed credentials that this row is about, and of those that a refresh has replaced.
        sealed_digest bytea not null,
        replaced_digest bytea,
        primary key (organization_id, social_account_id)
    )
    """,
    """
    create index credential_due on credential (provider, organization_id, next_time) where next_time is not null
    """,
    "create index credential_next on credential (next_time) where next_time is not null",
    """
    create index credential_warned on credential (organization_id, social_account_id)
    where is_warned and next_time is not null
    """,
    """
    create table credential_refresh (
        organization_id text not null,
        social_account_id text not null,
        number bigint not null,
        generation bigint not null,
        state text not null,
        process text not null,
        begin_time timestamptz not null,
        end_time timestamptz,
        error text not null,
        primary key (organization_id, social_account_id, number)
    )
    """,
    "create index credential_refresh_age on credential_refresh (begin_time)",
    """
    create table connect_session (
        organization_id text not null,
        state_digest bytea not null,
        state text not null,
        provider text not null,
        redirect_uri text not null,
        social_account_id text not null,
        display_name text not null,
        channels text[] not null,
        settings jsonb not null,
        expire_time timestamptz not null,
        exchange_end timestamptz,
        sealed bytea not null,
        primary key (organization_id, state_digest),
        check (state <> 'ENDED' or sealed = '')
    )
    """,
    "create index connect_session_expire on connect_session (expire_time)",
    "create index connect_session_account on connect_session (organization_id, social_account_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
