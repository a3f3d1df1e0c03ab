"""What is known of the media that drafts name."""

from alembic import op

revision = "0021"
down_revision = "0020"

STATEMENTS: tuple[str, ...] = (
    """
    create table media (
        organization_id text not null,
        -- SHA-256 of the whole URL.
        url_digest bytea not null,
        -- The URL without its query, which may be a signature.
        shown_url text not null,
        -- Empty, as the type and the hash, if the file was refused.
        kind text not null,
        content_type text not null,
        sha256 text not null,
        size bigint not null,
        width integer not null,
        height integer not null,
        duration interval,
        page_count integer not null,
        is_animated boolean not null,
        is_mislabeled boolean not null,
        error_reason text not null,
        error_message text not null,
        fetch_time timestamptz not null,
        primary key (organization_id, url_digest),
        check ((sha256 = '') = (error_reason <> ''))
    )
    """,
    "create index media_fetched on media (fetch_time)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
