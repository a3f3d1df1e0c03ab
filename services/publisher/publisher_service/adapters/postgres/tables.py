"""Publisher's tables as the code knows them. The migrations make them; a test compares the two."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from publisher_service.adapters.postgres import (
    account_tables,
    credential_tables,
    destination_tables,
    limit_tables,
    media_tables,
    notification_tables,
    preparation_tables,
    safe_mode_tables,
)
from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

__all__ = [
    "account_tables",
    "credential_tables",
    "destination_tables",
    "limit_tables",
    "media_tables",
    "metadata",
    "notification_tables",
    "preparation_tables",
    "safe_mode_tables",
]

content = Table(
    "content",
    metadata,
    text_column("organization_id"),
    text_column("draft_id"),
    number_column("version"),
    number_column("revision"),
    Column("content", LargeBinary, nullable=False),
    text_column("content_digest"),
    Column("approved", Boolean, nullable=False),
    number_column("withdrawn_below"),
    Column("post_job_ids", ARRAY(Text), nullable=False),
    Column("brand_id", Text, nullable=False, server_default=""),
    Column("campaign_id", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("organization_id", "draft_id"),
)

post_job = Table(
    "post_job",
    metadata,
    text_column("organization_id"),
    text_column("id"),
    text_column("draft_id"),
    text_column("social_account_id"),
    text_column("channel"),
    text_column("destination"),
    text_column("state"),
    text_column("state_reason"),
    number_column("version"),
    count_column("run"),
    text_column("slot_id"),
    number_column("slot_revision"),
    Column("schedule_time", Timestamp),
    Column("not_after", Timestamp),
    Column("next_action_time", Timestamp),
    count_column("max_attempts"),
    count_column("attempts"),
    number_column("fence"),
    number_column("content_revision"),
    number_column("withdrawn_below"),
    Column("publish_time", Timestamp),
    text_column("external_id"),
    text_column("external_url"),
    text_column("evidence_kind"),
    text_column("error_reason"),
    text_column("error_message"),
    Column("last_attempt_time", Timestamp),
    text_column("target_month"),
    text_column("traceparent"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    # Says which of two slots is newer: a number of Queue's database, 0 for slots of older releases.
    Column("slot_sequence", BigInteger, nullable=False, server_default=text("0")),
    # The revision of the draft that the slot's command knew; an older one is not sent.
    Column("wanted_revision", BigInteger, nullable=False, server_default=text("0")),
    Column("in_doubt", Boolean, nullable=False, server_default=text("false")),
    Column("unknown_until", Timestamp),
    # When the last claim ends, unless the previous release made it: that keeps it in `next_action_time`.
    Column("lease_end", Timestamp),
    # Those of the draft, here too because the claim locks the job and not the content.
    Column("brand_id", Text, nullable=False, server_default=""),
    Column("campaign_id", Text, nullable=False, server_default=""),
    # The run that a call began instead of a slot, and how PublishNow sends it.
    Column("called_run", Integer, nullable=False, server_default=text("0")),
    Column("publish_now", Boolean, nullable=False, server_default=text("false")),
    Column("over_cap", Boolean, nullable=False, server_default=text("false")),
    # Indexes have this instead of the state, so that a claim, which does not change it, writes no index entry.
    Column(
        "list_state",
        Text,
        Computed("case state when 'SENDING' then 'SCHEDULED' else state end", persisted=True),
        nullable=False,
    ),
    # The limit on which it is parked, out of the account's line; see `parking`.
    Column("parked_on", Text, nullable=False, server_default=""),
    # While it waits for a limit: the earliest time at which that may let it go.
    Column("expected_time", Timestamp),
    # 0 for the post, n for its n-th follow-up; how many come after it; and what it follows at the provider.
    Column("part", Integer, nullable=False, server_default=text("0")),
    Column("parts", Integer, nullable=False, server_default=text("0")),
    Column("follows", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint(
        "organization_id", "draft_id", "social_account_id", "channel", "destination", "part", name="post_job_target"
    ),
)
Index("post_job_due", post_job.c.next_action_time, postgresql_where=text("next_action_time is not null"))
# Partial, so that they are for lists alone.
Index(
    "post_job_newest",
    post_job.c.organization_id,
    post_job.c.list_state,
    post_job.c.create_time,
    post_job.c.id,
    postgresql_where=text("list_state <> ''"),
)
Index(
    "post_job_account",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.list_state,
    post_job.c.create_time,
    post_job.c.id,
    postgresql_where=text("list_state <> ''"),
)
Index(
    "post_job_watched",
    post_job.c.list_state,
    post_job.c.schedule_time,
    postgresql_where=text("list_state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')"),
)
Index(
    "post_job_in_line",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.state_reason,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text(
        "state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED', 'ORGANIZATION_ON_HOLD', 'PROVIDER_ON_HOLD',"
        " 'ACCOUNT_ON_HOLD', 'ACCOUNT_DISABLED', 'SEND_WINDOW')"
    ),
)
Index(
    "post_job_brand_held",
    post_job.c.organization_id,
    post_job.c.brand_id,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("state_reason = 'BRAND_ON_HOLD'"),
)
Index(
    "post_job_campaign_held",
    post_job.c.organization_id,
    post_job.c.campaign_id,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("state_reason = 'CAMPAIGN_ON_HOLD'"),
)
Index(
    "post_job_parked",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.parked_on,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("parked_on <> ''"),
)
# Posts of PublishNow in line. While nothing keeps a job back, it has no reason and no entry.
Index(
    "post_job_urgent",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("publish_now and state_reason <> ''"),
)
# Few jobs are ever in doubt.
Index(
    "post_job_in_doubt",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.id,
    postgresql_where=text("in_doubt"),
)
# Posts that wait for their destination stand in no line.
Index(
    "post_job_destination_inactive",
    post_job.c.organization_id,
    post_job.c.social_account_id,
    post_job.c.channel,
    post_job.c.destination,
    post_job.c.schedule_time,
    post_job.c.id,
    postgresql_where=text("state_reason = 'DESTINATION_INACTIVE'"),
)

# Jobs whose next part is to be looked at: they are out.
follow_up_due = Table(
    "follow_up_due",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    Column("next_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "post_job_id"),
)
# Partial, so that it is for the search alone, and the walk over organizations has the other one.
Index("follow_up_due_next", follow_up_due.c.next_time, postgresql_where=text("organization_id <> ''"))
Index("follow_up_due_turn", follow_up_due.c.organization_id, follow_up_due.c.next_time)

# A row per claim, until all its jobs are settled.
open_claim = Table(
    "open_claim",
    metadata,
    # Its name on the attempts.
    text_column("sender"),
    Column("lease_end", Timestamp, nullable=False),
    count_column("unsettled"),
    # One element per job.
    Column("organization_ids", ARRAY(Text), nullable=False),
    Column("post_job_ids", ARRAY(Text), nullable=False),
    PrimaryKeyConstraint("sender"),
)
Index("open_claim_end", open_claim.c.lease_end)

attempt = Table(
    "attempt",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    count_column("run"),
    count_column("number"),
    number_column("fence"),
    text_column("state"),
    text_column("idempotency_key"),
    number_column("content_revision"),
    text_column("content_digest"),
    Column("start_time", Timestamp, nullable=False),
    Column("end_time", Timestamp),
    text_column("external_id"),
    text_column("error_reason"),
    text_column("error_message"),
    Column("sender", Text, nullable=False, server_default=""),
    # Null for attempts that ended otherwise: they are equal to none.
    Column(
        "may_be_out",
        Boolean,
        Computed("case when state in ('SENDING', 'UNKNOWN', 'ACCEPTED') then true end", persisted=True),
    ),
    PrimaryKeyConstraint("organization_id", "post_job_id", "fence"),
    # A job has one attempt that is open or accepted. No column of this changes when an attempt is accepted. It is
    # checked when a transaction ends: the previous release accepts an attempt before it abandons a later one.
    UniqueConstraint(
        "organization_id", "post_job_id", "may_be_out", name="attempt_out", deferrable=True, initially="DEFERRED"
    ),
)

kept_content = Table(
    "kept_content",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    number_column("revision"),
    Column("content", LargeBinary, nullable=False),
    text_column("content_digest"),
    PrimaryKeyConstraint("organization_id", "post_job_id", "revision"),
)

resolution = Table(
    "resolution",
    metadata,
    text_column("organization_id"),
    text_column("post_job_id"),
    count_column("run"),
    text_column("outcome"),
    text_column("external_id"),
    text_column("external_url"),
    text_column("resolver"),
    text_column("note"),
    Column("create_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "post_job_id", "run"),
)

activity = Table(
    "activity",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    text_column("id"),
    text_column("post_job_id"),
    text_column("action"),
    text_column("outcome"),
    Column("create_time", Timestamp, nullable=False),
    Column("run", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("organization_id", "social_account_id", "create_time", "id"),
)
