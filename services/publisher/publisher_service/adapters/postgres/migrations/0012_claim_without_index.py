"""Indexes of post jobs without a column that a claim changes, so that it writes no index entry.

Lists and alarms find a job by `list_state`, the same for SCHEDULED and SENDING; it is right for rows of the previous
release, too. The end of a lease stands in no index: `open_claim` has a row for each claim until its jobs are settled.
The table is rewritten under its strongest lock.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

STATEMENTS = (
    # For the rewrite: jobs that have ended need no room.
    "alter table post_job reset (fillfactor)",
    "drop index post_job_due, post_job_newest, post_job_account, post_job_watched, post_job_sending",
    """
    alter table post_job
        -- Of the last claim. The previous release keeps it in next_action_time.
        add column lease_end timestamptz,
        add column list_state text not null
            generated always as (case state when 'SENDING' then 'SCHEDULED' else state end) stored,
        drop constraint post_job_moves,
        -- Nothing that still has to move may be forgotten, and nothing that has ended may wake up.
        add constraint post_job_moves check (
            case state when 'SENDING' then coalesce(next_action_time, lease_end) is not null
                else (state in ('READY', 'WAITING', 'BLOCKED', 'UNKNOWN')) = (next_action_time is not null) end
        )
    """,
    "alter table post_job set (fillfactor = 45)",
    "create index post_job_due on post_job (next_action_time) where next_action_time is not null",
    # Partial, so that they are for lists alone: without statistics, a line would be read by the second one.
    "create index post_job_newest on post_job (organization_id, list_state, create_time, id) where list_state <> ''",
    """
    create index post_job_account on post_job (organization_id, social_account_id, list_state, create_time, id)
        where list_state <> ''
    """,
    """
    create index post_job_watched on post_job (list_state, schedule_time)
        where list_state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')
    """,
    """
    create table open_claim (
        sender text primary key,
        lease_end timestamptz not null,
        unsettled integer not null check (unsettled > 0),
        organization_ids text[] not null,
        post_job_ids text[] not null
    ) with (fillfactor = 50)
    """,
    # The arrays of a full batch are kept apart; to compress them would cost more than to write them.
    """
    alter table open_claim
        alter column organization_ids set storage external, alter column post_job_ids set storage external
    """,
    "create index open_claim_end on open_claim (lease_end)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
