"""Room in a page for new versions of slots and targets: both grow when they are dispatched and reported.

A new version in another page makes the table longer, and a report to a target whose page is full writes its index. The
setting holds for new pages; nothing is rewritten.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

STATEMENTS = (
    "alter table slot set (fillfactor = 45)",
    "alter table slot_target set (fillfactor = 40)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
