"""Edits that are made after Publisher's answer, the reasons of post jobs, and drafts that are blocked."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    # A process of the release before writes neither column; it knows no edit that waits for its withdrawal either.
    "alter table draft add column exposed boolean not null default false",
    "alter table post_job add column state_reason text not null default ''",
    # An approval is a change that a user makes, and no revision: what has more of those than of these was approved.
    "update draft set exposed = true where edit_version > revision or withdraw_below is not null",
    # A withdrawal is of the revision to come; and a draft whose edit was not made gets a revision that no user made.
    """
    alter table draft
        drop constraint draft_withdrawal,
        add constraint draft_withdrawal check (
            (withdraw_below is null) = (withdraw_due_time is null) and withdraw_below <= revision + 1
        ),
        drop constraint draft_versions,
        add constraint draft_versions check (revision >= 1 and version >= revision and edit_version >= 1),
        drop constraint draft_state_check,
        add constraint draft_state check (state in ('DRAFT', 'SCHEDULED', 'PUBLISHING', 'PUBLISHED',
            'PARTIALLY_PUBLISHED', 'FAILED', 'NEEDS_ATTENTION', 'BLOCKED'))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
