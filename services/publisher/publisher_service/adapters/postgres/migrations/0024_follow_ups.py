"""Follow-ups: a post job may be a comment below a post, or a further part of a thread.

The unique index of post jobs is built again, under the strongest lock of the table: processes of the previous release
wait meanwhile. They find and write posts as before, for each of those is part 0.
"""

from alembic import op

revision = "0024"
down_revision = "0023"

STATEMENTS: tuple[str, ...] = (
    # Constants: no row is rewritten.
    """
    alter table post_job
        -- 0 for the post, n for its n-th follow-up; and how many come after it.
        add column part integer not null default 0,
        add column parts integer not null default 0,
        -- At the provider: the post that this is a comment on, or the part before it in a thread.
        add column follows text not null default ''
    """,
    """
    alter table post_job
        drop constraint post_job_target,
        add constraint post_job_target
            unique (organization_id, draft_id, social_account_id, channel, destination, part)
    """,
    # Posts that are out, until their next follow-ups have begun.
    """
    create table follow_up_due (
        organization_id text not null,
        post_job_id text not null,
        next_time timestamptz not null,
        primary key (organization_id, post_job_id)
    )
    """,
    # Partial, so that it is for the search alone, and the walk over organizations has the other one.
    "create index follow_up_due_next on follow_up_due (next_time) where organization_id <> ''",
    "create index follow_up_due_turn on follow_up_due (organization_id, next_time)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
