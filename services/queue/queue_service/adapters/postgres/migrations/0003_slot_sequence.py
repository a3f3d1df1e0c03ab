"""Which of two slots of a draft on an account is the newer: a number that the database gives."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    "alter table account_queue add column last_sequence bigint not null default 0",
    # A constant first, because a volatile default would rewrite the table under its strongest lock.
    "alter table slot add column sequence bigint not null default 0",
    # Processes of the release before insert slots without a number: the default gives them one that fits in.
    "alter table slot alter column sequence set default (extract(epoch from clock_timestamp()) * 1000000)::bigint",
    "update slot set sequence = (extract(epoch from create_time) * 1000000)::bigint",
    """
    update account_queue q set last_sequence = greatest(q.last_sequence, newest.sequence)
    from (
        select organization_id, social_account_id, max(sequence) as sequence
        from slot group by organization_id, social_account_id
    ) as newest
    where q.organization_id = newest.organization_id and q.social_account_id = newest.social_account_id
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
