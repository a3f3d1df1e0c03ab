"""Queues that can be paused, skipped, rearranged and set up, and slots that can be taken back.

Dispatch finds accounts by `due_time`, which is null while an account is held up, so that such accounts cost it nothing.
The table of accounts is rewritten under its strongest lock. The previous release looks for `next_due_time`, which has
no index any more: it reads all accounts once a second until it is gone.
"""

from alembic import op

revision = "0014"
down_revision = "0013"

STATEMENTS = (
    "drop index account_queue_due",
    """
    alter table account_queue
        add column arrangement bigint not null default 0,
        add column pause_time timestamptz,
        add column pauser text not null default '',
        add column pause_reason text not null default '',
        add column hold_revision bigint not null default 0,
        add column hold_stored_revision bigint not null default 0,
        add column skip_next boolean not null default false,
        add column skipped_times timestamptz[] not null default '{}',
        add column category_frontiers jsonb not null default '{}',
        add column late_action text not null default 'PUBLISH',
        add column late_grace interval not null default '10 minutes',
        add column pace interval not null default '5 minutes',
        add column is_connected boolean not null default true,
        add column is_held_up boolean not null generated always as (
            pause_time is not null or not is_connected
            or (schedule_version > 0 and time_zone <> '' and not enabled)
        ) stored,
        add column due_time timestamptz generated always as (
            case when not (
                pause_time is not null or not is_connected
                or (schedule_version > 0 and time_zone <> '' and not enabled)
            ) then next_due_time end
        ) stored,
        add constraint account_queue_late_action check (late_action in ('PUBLISH', 'RESLOT', 'MISS'))
    """,
    """
    update account_queue q set is_connected = false
    from social_account a
    where a.organization_id = q.organization_id and a.id = q.social_account_id and not a.is_connected
    """,
    "create index account_queue_due on account_queue (due_time) where due_time is not null",
    """
    create index account_queue_held_up on account_queue (next_due_time)
        where is_held_up and pause_time is null and next_due_time is not null
    """,
    """
    create index account_queue_late on account_queue (due_time)
        where late_action = 'RESLOT' and due_time is not null
    """,
    """
    create index account_queue_hold_pending on account_queue (organization_id, social_account_id)
        where hold_revision <> hold_stored_revision
    """,
    """
    alter table slot
        add column taking_back text not null default '',
        add column move_reason text not null default '',
        add constraint slot_taking_back check (taking_back in ('', 'RETURN', 'CANCEL')),
        drop constraint slot_origin_check,
        add constraint slot_origin_check check (origin in ('QUEUE', 'EXACT', 'DRAFT'))
    """,
    """
    create index slot_being_taken_back on slot (organization_id, social_account_id)
        where taking_back <> ''
    """,
    """
    alter table draft
        add column requested_time timestamptz,
        add column category_id text not null default ''
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
