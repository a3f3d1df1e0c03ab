"""Indexes of slots without a column that a dispatch changes, so that it writes no index entry.

The generated columns are right for the previous release's rows, too. The table is rewritten under its strongest lock,
which takes 9 s for a million slots. A slot gets the instant of its first repeat with its time; those of the previous
release get it when they are dispatched.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    # For the rewrite: slots that have ended need no room.
    "alter table slot reset (fillfactor)",
    "drop index slot_live_time, slot_live_draft, slot_by_time, slot_by_account, slot_unanswered",
    """
    alter table slot
        add column is_live boolean not null
            generated always as (state in ('SCHEDULED', 'DISPATCHED')) stored,
        add column list_state text not null
            generated always as (case when state in ('SCHEDULED', 'DISPATCHED') then 'LIVE' else state end) stored,
        drop constraint slot_emission,
        -- A slot that is not dispatched yet may have the instant already, at which its commands will be repeated.
        add constraint slot_emission check (
            case state when 'DISPATCHED' then next_emit_at is not null
                when 'SCHEDULED' then true else next_emit_at is null end
        )
    """,
    "alter table slot set (fillfactor = 45)",
    """
    create unique index slot_live_time on slot (organization_id, social_account_id, schedule_time)
        where is_live
    """,
    """
    create unique index slot_live_draft on slot (organization_id, draft_id, social_account_id)
        where is_live
    """,
    "create index slot_by_time on slot (organization_id, list_state, schedule_time, id)",
    "create index slot_by_account on slot (organization_id, social_account_id, list_state, schedule_time, id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
