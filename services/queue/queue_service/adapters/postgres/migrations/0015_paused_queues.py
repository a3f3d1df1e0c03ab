"""An index of paused queues, whose dispatched slots are taken back from time to time."""

from alembic import op

revision = "0015"
down_revision = "0014"

INDEX = """
    create index account_queue_paused on account_queue (organization_id, social_account_id)
        where pause_time is not null
"""


def upgrade() -> None:
    op.execute(INDEX)
