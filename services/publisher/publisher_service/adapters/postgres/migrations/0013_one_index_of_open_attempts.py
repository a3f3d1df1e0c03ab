"""One unique index for the attempts of a job that are open or accepted, instead of one for each.

None of its columns changes when an attempt is accepted, so that a settlement writes no index entry. It is that of a
constraint, which is checked when a transaction ends: the previous release records a late proof in the other order, and
accepts the earlier attempt before it abandons the later. A constraint has no condition, so its column is null where an
attempt has ended otherwise. The table is rewritten under its strongest lock.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    # For the rewrite: attempts that have ended need no room.
    "alter table attempt reset (fillfactor)",
    "drop index attempt_open, attempt_accepted",
    """
    alter table attempt add column may_be_out boolean
        generated always as (case when state in ('SENDING', 'UNKNOWN', 'ACCEPTED') then true end) stored
    """,
    "alter table attempt set (fillfactor = 50)",
    # Two attempts of a job that are open or accepted cannot be written down.
    """
    alter table attempt add constraint attempt_out unique (organization_id, post_job_id, may_be_out)
        deferrable initially deferred
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
