"""Room in a page for new versions of its rows, whose updates then write no index.

Drafts that were made together are published together: at 80 % half of the updates of a batch found no room, and each
wrote an entry of the primary key. The setting holds for new pages; nothing is rewritten.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    "alter table draft set (fillfactor = 60)",
    "alter table post_job set (fillfactor = 50)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
