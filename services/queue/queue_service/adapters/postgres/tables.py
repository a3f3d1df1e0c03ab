"""Queue's tables as the code knows them. The migrations create them; a test compares the two."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Interval,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    Time,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from servicekit.pg.tables import Timestamp, add_service_tables

_LIVE = "('SCHEDULED', 'DISPATCHED')"
_LIST_STATE = f"case when state in {_LIVE} then 'LIVE' else state end"
_HELD_UP = "pause_time is not null or not is_connected or (schedule_version > 0 and time_zone <> '' and not enabled)"
_BY_THE_CLOCK = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"

metadata = MetaData()
add_service_tables(metadata)

account_queue = Table(
    "account_queue",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("social_account_id", Text, nullable=False),
    Column("schedule_version", BigInteger, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("max_posts_per_day", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    # See queue_service.domain.frontier.
    Column("search_from", Timestamp, nullable=False),
    Column("full_from", Timestamp, nullable=False),
    Column("full_until", Timestamp, nullable=False),
    # Never later than the account's earliest SCHEDULED slot; null only when it has none.
    Column("next_due_time", Timestamp),
    # The newest tzdata release that Schedule has used for the account; `slots_behind` if slots may have an older one.
    Column("tzdata_version", Text(collation="C"), nullable=False, server_default=""),
    Column("slots_behind", Boolean, nullable=False, server_default=text("false")),
    # The greatest sequence of the account's slots.
    Column("last_sequence", BigInteger, nullable=False, server_default=text("0")),
    # Counts the changes that calls have made to the queue: its etag.
    Column("arrangement", BigInteger, nullable=False, server_default=text("0")),
    # Null unless the queue is paused.
    Column("pause_time", Timestamp),
    Column("pauser", Text, nullable=False, server_default=""),
    Column("pause_reason", Text, nullable=False, server_default=""),
    # Counts pauses and resumptions; Publisher has stored the hold or release of `hold_stored_revision`.
    Column("hold_revision", BigInteger, nullable=False, server_default=text("0")),
    Column("hold_stored_revision", BigInteger, nullable=False, server_default=text("0")),
    # The next draft that is added to the end leaves a slot time empty; those left empty so far.
    Column("skip_next", Boolean, nullable=False, server_default=text("false")),
    Column("skipped_times", ARRAY(Timestamp), nullable=False, server_default="{}"),
    # Like search_from, full_from and full_until, by category.
    Column("category_frontiers", JSONB, nullable=False, server_default="{}"),
    # What happens to posts that could not be handed over in time: PUBLISH, RESLOT or MISS.
    Column("late_action", Text, nullable=False, server_default="PUBLISH"),
    Column("late_grace", Interval, nullable=False, server_default=text("interval '10 minutes'")),
    # Between two overdue posts that go out after a resumption.
    Column("pace", Interval, nullable=False, server_default=text("interval '5 minutes'")),
    # As in `social_account`; true for an account that Publisher has not announced.
    Column("is_connected", Boolean, nullable=False, server_default=text("true")),
    # Dispatch passes over accounts that are held up: they have no `due_time`.
    Column("is_held_up", Boolean, Computed(_HELD_UP, persisted=True), nullable=False),
    Column("due_time", Timestamp, Computed(f"case when not ({_HELD_UP}) then next_due_time end", persisted=True)),
    PrimaryKeyConstraint("organization_id", "social_account_id"),
)
Index("account_queue_due", account_queue.c.due_time, postgresql_where=text("due_time is not null"))
Index(
    "account_queue_held_up",
    account_queue.c.next_due_time,
    postgresql_where=text("is_held_up and pause_time is null and next_due_time is not null"),
)
Index(
    "account_queue_late",
    account_queue.c.due_time,
    postgresql_where=text("late_action = 'RESLOT' and due_time is not null"),
)
Index(
    "account_queue_hold_pending",
    account_queue.c.organization_id,
    account_queue.c.social_account_id,
    postgresql_where=text("hold_revision <> hold_stored_revision"),
)
Index(
    "account_queue_paused",
    account_queue.c.organization_id,
    account_queue.c.social_account_id,
    postgresql_where=text("pause_time is not null"),
)
Index("account_queue_behind", account_queue.c.tzdata_version, postgresql_where=text("slots_behind"))

# Which accounts can post. Publisher is asked about an account that it has not announced.
social_account = Table(
    "social_account",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("is_connected", Boolean, nullable=False),
    PrimaryKeyConstraint("organization_id", "id"),
)

draft = Table(
    "draft",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # Whether its newest announcement was approved; false if the previous release saved it.
    Column("approved", Boolean, nullable=False),
    Column("targets", JSONB, nullable=False),
    Column("requested_time", Timestamp),
    Column("category_id", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("organization_id", "id"),
)

slot = Table(
    "slot",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("draft_id", Text, nullable=False),
    Column("social_account_id", Text, nullable=False),
    Column("schedule_time", Timestamp, nullable=False),
    Column("state", Text, nullable=False),
    Column("origin", Text, nullable=False),
    # Grows whenever the time changes; answers to an older revision are ignored.
    Column("revision", BigInteger, nullable=False),
    # The number of the newest copy of the slot's commands.
    Column("emission", Integer, nullable=False),
    # When to look at the commands of a dispatched slot next. It is set before, so that the dispatch does not change it.
    Column("next_emit_at", Timestamp),
    Column("not_after", Timestamp, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("local_date", Date),
    Column("local_time", Time),
    Column("expected_time", Timestamp),
    Column("publish_time", Timestamp),
    Column("content_revision", BigInteger, nullable=False),
    Column("traceparent", Text, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    # The wall-clock time of the weekly slot; null for a time of the caller's choice.
    Column("nominal_local_time", DateTime),
    # The tzdata release that converted between the instant and the local time.
    Column("tzdata_version", Text(collation="C")),
    # The newer of two slots of a draft on an account has the greater one. The default is for the previous release.
    Column("sequence", BigInteger, nullable=False, server_default=text(_BY_THE_CLOCK)),
    # Each target's job is READY or further, so its command is answered.
    Column("is_answered", Boolean, nullable=False, server_default=text("false")),
    # Why a slot that sent nothing is CANCELED.
    Column("state_reason", Text, nullable=False, server_default=""),
    # When Queue noticed that the slot should have ended.
    Column("overdue_time", Timestamp),
    # What to do once Publisher has given the slot back: RETURN to the queue or CANCEL. Empty: nothing was asked.
    Column("taking_back", Text, nullable=False, server_default=""),
    # Why the slot got its present time, if it has moved.
    Column("move_reason", Text, nullable=False, server_default=""),
    # Indexes have these instead of the state, so that a dispatch, which changes neither, writes no index entry.
    Column("is_live", Boolean, Computed(f"state in {_LIVE}", persisted=True), nullable=False),
    Column(
        "list_state",
        Text,
        Computed(f"case when state in {_LIVE} then 'LIVE' else state end", persisted=True),
        nullable=False,
    ),
    PrimaryKeyConstraint("organization_id", "id"),
)
# A slot takes one instant of its account, and a draft has one live slot on an account.
Index(
    "slot_live_time",
    slot.c.organization_id,
    slot.c.social_account_id,
    slot.c.schedule_time,
    unique=True,
    postgresql_where=text("is_live"),
)
Index(
    "slot_live_draft",
    slot.c.organization_id,
    slot.c.draft_id,
    slot.c.social_account_id,
    unique=True,
    postgresql_where=text("is_live"),
)
Index(
    "slot_being_taken_back",
    slot.c.organization_id,
    slot.c.social_account_id,
    postgresql_where=text("taking_back <> ''"),
)
Index("slot_emission_due", slot.c.next_emit_at, postgresql_where=text("next_emit_at is not null"))
Index(
    "slot_overdue",
    slot.c.not_after,
    postgresql_where=text("overdue_time is not null and next_emit_at is not null"),
)
# The state comes before the time, so a list of some states reads no slots in other states.
Index("slot_by_time", slot.c.organization_id, slot.c.list_state, slot.c.schedule_time, slot.c.id)
Index(
    "slot_by_account",
    slot.c.organization_id,
    slot.c.social_account_id,
    slot.c.list_state,
    slot.c.schedule_time,
    slot.c.id,
)
Index("slot_by_draft", slot.c.organization_id, slot.c.draft_id)

# The stream PUBLISH as it was last seen: if its sequence is lower now, it has lost commands.
publish_stream = Table(
    "publish_stream",
    metadata,
    Column("name", Text, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    # Counts the losses. During a recovery the commands of slots without an answer are made due for a repeat.
    Column("losses", BigInteger, nullable=False),
    Column("is_recovering", Boolean, nullable=False),
    PrimaryKeyConstraint("name"),
)

# Where the stream PUBLISH has stored commands: a row per batch, written once.
sent_commands = Table(
    "sent_commands",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    # How often the stream had lost commands before these were sent.
    Column("losses", BigInteger, nullable=False),
    Column("first_sequence", BigInteger, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    # One element per command.
    Column("organization_ids", ARRAY(Text), nullable=False),
    Column("slot_ids", ARRAY(Text), nullable=False),
    Column("emissions", ARRAY(Integer), nullable=False),
    Column("channels", ARRAY(Text), nullable=False),
    Column("destinations", ARRAY(Text), nullable=False),
    Column("sequences", ARRAY(BigInteger), nullable=False),
)

slot_target = Table(
    "slot_target",
    metadata,
    Column("organization_id", Text, nullable=False),
    Column("slot_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("destination", Text, nullable=False),
    # The job as Publisher has announced it; the version orders its announcements.
    Column("post_job_id", Text, nullable=False),
    Column("job_state", Text),
    Column("job_version", BigInteger, nullable=False),
    Column("external_url", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("next_action_time", Timestamp),
    Column("publish_time", Timestamp),
    Column("state_reason", Text, nullable=False, server_default=""),
    # The job ended with another slot of the draft.
    Column("of_another_slot", Boolean, nullable=False, server_default=text("false")),
    # PublishNow sends it at present.
    Column("sent_now", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("organization_id", "slot_id", "channel", "destination"),
    ForeignKeyConstraint(["organization_id", "slot_id"], ["slot.organization_id", "slot.id"]),
)
Index(
    "slot_target_sent_now",
    slot_target.c.organization_id,
    slot_target.c.slot_id,
    postgresql_where=text("sent_now"),
)
