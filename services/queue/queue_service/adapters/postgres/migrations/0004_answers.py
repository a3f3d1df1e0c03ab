"""Whether a slot's commands have been answered, why its posts wait, and posts of another slot."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    """
    alter table slot
        add column is_answered boolean not null default false,
        add column state_reason text not null default ''
    """,
    """
    alter table slot_target
        add column state_reason text not null default '',
        add column of_another_slot boolean not null default false
    """,
    """
    update slot s set is_answered = true
    where s.next_emit_at is not null and not exists (
        select from slot_target t
        where t.organization_id = s.organization_id and t.slot_id = s.id
            and (t.job_state is null or t.job_state in ('PENDING', 'SCHEDULED'))
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
