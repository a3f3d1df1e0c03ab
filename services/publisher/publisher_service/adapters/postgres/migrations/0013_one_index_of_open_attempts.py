"""One unique index for the attempts of a job that are open or accepted, instead of one for each.

Neither its column nor its condition changes when an attempt is accepted, so that a settlement writes no index entry.
The table is rewritten under its strongest lock.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    # For the rewrite: attempts that have ended need no room.
    "alter table attempt reset (fillfactor)",
    "drop index attempt_open, attempt_accepted",
    """
    alter table attempt add column may_be_out boolean not null
        generated always as (state in ('SENDING', 'UNKNOWN', 'ACCEPTED')) stored
    """,
    "alter table attempt set (fillfactor = 50)",
    # Two attempts of a job that are open or accepted cannot be written down.
    "create unique index attempt_out on attempt (organization_id, post_job_id) where may_be_out",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
