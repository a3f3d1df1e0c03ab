"""The line of an account: what is due waits in the database, and the account knows when its next post may go."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    # Which of two slots is the newer: a number of Queue's database; 0 for slots of older releases.
    "alter table post_job add column slot_sequence bigint not null default 0",
    # The revision of the draft that the slot's command knew: an older one is not sent.
    "alter table post_job add column wanted_revision bigint not null default 0",
    "alter table account_gate add column provider text not null default ''",
    # Posts may wait in the account's line.
    "alter table account_gate add column lined boolean not null default false",
    # Nothing goes out before this instant, whatever waits.
    "alter table account_gate add column resume_time timestamptz",
    # When the line is to be looked at; null while nothing waits, something is being sent, or nothing may be.
    "alter table account_gate add column wake_time timestamptz",
    # The account was connected or disconnected, and what waits does not show it yet.
    "alter table account_gate add column relabel boolean not null default false",
    "create index account_gate_wake on account_gate (provider, wake_time) where wake_time is not null",
    "create index account_gate_relabel on account_gate (organization_id, social_account_id) where relabel",
    "drop index post_job_unconnected",
    """
    create index post_job_line on post_job (organization_id, social_account_id, schedule_time, id)
    where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED')
    """,
    """
    update account_gate g set provider = a.provider from social_account a
    where a.organization_id = g.organization_id and a.id = g.social_account_id
    """,
    # Whatever waits for a connection stands in its account's line from now on.
    "update account_gate set lined = true, relabel = true",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
