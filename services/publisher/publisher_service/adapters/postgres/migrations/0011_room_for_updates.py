"""Room in a page for new versions of jobs and attempts: of a job, two in a row; an attempt's one is as long as it.

A new version in another page writes and dirties both. The setting holds for new pages; nothing is rewritten.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS = (
    "alter table post_job set (fillfactor = 45)",
    "alter table attempt set (fillfactor = 50)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
