"""Runs whose outcome is in doubt, until when it is looked up, the bytes that were sent, and what a person said."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS = (
    # The defaults are for replicas of the release before.
    """
    alter table post_job
        -- An attempt of this run may have reached the provider.
        add column in_doubt boolean not null default false,
        -- While UNKNOWN: then a person is asked; null in rows of the release before.
        add column unknown_until timestamptz
    """,
    """
    update post_job j set in_doubt = true
    where j.state in ('SCHEDULED', 'READY', 'SENDING', 'WAITING', 'BLOCKED', 'UNKNOWN', 'NEEDS_ATTENTION')
        and exists (
            select 1 from attempt a
            where a.organization_id = j.organization_id and a.post_job_id = j.id and a.run = j.run
                and a.state in ('UNKNOWN', 'ABSENT')
        )
    """,
    # A run in doubt does not end as unsent.
    """
    alter table post_job add constraint post_job_doubt check (
        not in_doubt or state not in ('FAILED', 'MISSED', 'CANCELED')
    )
    """,
    # Which claim of which process opened the attempt.
    "alter table attempt add column sender text not null default ''",
    # The bytes of attempts that may have gone out: a resend under the same key carries the same.
    """
    create table kept_content (
        organization_id text not null,
        post_job_id text not null,
        revision bigint not null,
        content bytea not null,
        content_digest text not null,
        primary key (organization_id, post_job_id, revision)
    )
    """,
    """
    create table resolution (
        organization_id text not null,
        post_job_id text not null,
        run integer not null,
        outcome text not null check (outcome in ('PUBLISHED', 'NOT_PUBLISHED')),
        external_id text not null,
        external_url text not null,
        resolver text not null,
        note text not null,
        create_time timestamptz not null,
        primary key (organization_id, post_job_id, run)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
