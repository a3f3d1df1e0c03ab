"""Notifications: recipients, webhooks, and what is on its way to them."""

from alembic import op

revision = "0023"
down_revision = "0022"

STATEMENTS: tuple[str, ...] = (
    """
    create table recipient_list (
        organization_id text not null,
        -- Empty: the default list of the organization.
        brand_id text not null,
        name text not null,
        time_zone text not null,
        -- A list of objects with email, name and role.
        recipients jsonb not null,
        -- The kinds that are mailed; empty: all.
        kinds text[] not null,
        published text not null,
        digest_hour integer not null check (digest_hour between 0 and 23),
        -- The version of the brand that Drafts has announced; 0 if none.
        announced_version bigint not null,
        version bigint not null,
        update_time timestamptz not null,
        primary key (organization_id, brand_id)
    )
    """,
    """
    create table account_brand (
        organization_id text not null,
        social_account_id text not null,
        brand_id text not null check (brand_id <> ''),
        primary key (organization_id, social_account_id, brand_id)
    )
    """,
    """
    create table webhook_subscription (
        organization_id text not null,
        id text not null check (id <> ''),
        url text not null,
        kinds text[] not null,
        brand_ids text[] not null,
        description text not null,
        state text not null,
        state_reason text not null,
        -- Attempts since the last success, and deliveries given up since then.
        failures integer not null,
        exhausted integer not null,
        failing_since timestamptz,
        last_success_time timestamptz,
        -- Sealed, as the credentials of accounts are. The former one signs, too, until its end.
        secret bytea not null,
        former_secret bytea,
        former_secret_end_time timestamptz,
        version bigint not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        primary key (organization_id, id),
        check ((former_secret is null) = (former_secret_end_time is null)),
        check ((state = 'ACTIVE') = (state_reason = ''))
    )
    """,
    """
    create table notification_line (
        organization_id text not null,
        -- A webhook; empty: all e-mails of the organization.
        receiver text not null,
        -- When something is to be sent; null: nothing waits, or the webhook is paused.
        next_time timestamptz,
        -- Grows with each turn. While a process has one, until when.
        fence bigint not null default 0,
        lease_end timestamptz,
        -- Attempts that failed since one succeeded.
        failures integer not null default 0,
        -- Its last answer took long: it takes its turns among others like it.
        slow boolean not null default false,
        -- The e-mails that were not put into a digest, in which hour.
        hour_time timestamptz,
        hour_mails integer not null default 0,
        primary key (organization_id, receiver)
    )
    """,
    """
    create index notification_line_mail on notification_line (slow, next_time)
    where receiver = '' and next_time is not null
    """,
    """
    create index notification_line_webhook on notification_line (slow, next_time)
    where receiver <> '' and next_time is not null
    """,
    """
    create table notification (
        organization_id text not null,
        -- Computed from kind, subject and occasion.
        id text not null,
        kind text not null,
        subject_id text not null,
        occasion text not null,
        social_account_id text not null,
        brand_id text not null,
        time timestamptz not null,
        facts jsonb not null,
        create_time timestamptz not null,
        primary key (organization_id, id)
    )
    """,
    "create index notification_age on notification (create_time)",
    """
    create table delivery (
        organization_id text not null,
        id text not null,
        -- Empty for a digest, which has items.
        notification_id text not null,
        kind text not null,
        receiver text not null,
        -- Empty for a webhook.
        email text not null,
        name text not null,
        brand_id text not null,
        state text not null,
        due_time timestamptz not null,
        -- Without an attempt until then it is skipped.
        expire_time timestamptz,
        attempts integer not null,
        -- How many notifications a digest joins.
        items integer not null,
        error_reason text not null,
        error_message text not null,
        create_time timestamptz not null,
        update_time timestamptz not null,
        end_time timestamptz,
        primary key (organization_id, id),
        check ((receiver = '') = (email <> '')),
        check ((notification_id = '') = (kind = 'DIGEST')),
        check ((state in ('WAITING', 'PAUSED')) = (end_time is null))
    )
    """,
    """
    create index delivery_waiting on delivery (organization_id, receiver, due_time, id) where state = 'WAITING'
    """,
    "create index delivery_page on delivery (organization_id, create_time, id)",
    "create index delivery_receiver on delivery (organization_id, receiver, create_time, id)",
    "create index delivery_age on delivery (create_time)",
    """
    create index delivery_test on delivery (organization_id) where kind = 'TEST' and state = 'WAITING'
    """,
    """
    create table digest_item (
        organization_id text not null,
        delivery_id text not null,
        notification_id text not null,
        primary key (organization_id, delivery_id, notification_id)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
