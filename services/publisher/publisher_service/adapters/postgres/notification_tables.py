"""The tables of notifications: recipients, webhooks, and what is on its way to them."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher_service.adapters.postgres.schema import count_column, metadata, number_column, text_column
from servicekit.pg.tables import Timestamp

# Who gets e-mails about the posts of a brand, or about what has none.
recipient_list = Table(
    "recipient_list",
    metadata,
    text_column("organization_id"),
    # Empty: the default list of the organization.
    text_column("brand_id"),
    text_column("name"),
    text_column("time_zone"),
    # A list of objects with email, name and role.
    Column("recipients", JSONB, nullable=False),
    # The kinds that are mailed; empty: all.
    Column("kinds", ARRAY(Text), nullable=False),
    text_column("published"),
    count_column("digest_hour"),
    # The version of the brand that Drafts has announced; 0 if none.
    number_column("announced_version"),
    number_column("version"),
    Column("update_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "brand_id"),
    CheckConstraint("digest_hour between 0 and 23", name="recipient_list_digest_hour_check"),
)

# The brands for which an account has posted, from the first post that people were notified of.
account_brand = Table(
    "account_brand",
    metadata,
    text_column("organization_id"),
    text_column("social_account_id"),
    text_column("brand_id"),
    PrimaryKeyConstraint("organization_id", "social_account_id", "brand_id"),
    CheckConstraint("brand_id <> ''", name="account_brand_brand_id_check"),
)

webhook_subscription = Table(
    "webhook_subscription",
    metadata,
    text_column("organization_id"),
    text_column("id"),
    text_column("url"),
    Column("kinds", ARRAY(Text), nullable=False),
    Column("brand_ids", ARRAY(Text), nullable=False),
    text_column("description"),
    text_column("state"),
    text_column("state_reason"),
    # Attempts since the last success, and deliveries given up since then.
    count_column("failures"),
    count_column("exhausted"),
    Column("failing_since", Timestamp),
    Column("last_success_time", Timestamp),
    # Sealed, as the credentials of accounts are. The former one signs, too, until its end.
    Column("secret", LargeBinary, nullable=False),
    Column("former_secret", LargeBinary),
    Column("former_secret_end_time", Timestamp),
    number_column("version"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "id"),
    CheckConstraint("id <> ''", name="webhook_subscription_id_check"),
    CheckConstraint("(former_secret is null) = (former_secret_end_time is null)", name="webhook_subscription_check"),
    CheckConstraint("(state = 'ACTIVE') = (state_reason = '')", name="webhook_subscription_check1"),
)

# Where deliveries wait for one receiver: a line has one turn at a time.
notification_line = Table(
    "notification_line",
    metadata,
    text_column("organization_id"),
    # A webhook; empty: all e-mails of the organization.
    text_column("receiver"),
    # When something is to be sent; null: nothing waits, or the webhook is paused.
    Column("next_time", Timestamp),
    # Grows with each turn. While a process has one, until when.
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("lease_end", Timestamp),
    # Attempts that failed since one succeeded.
    Column("failures", Integer, nullable=False, server_default=text("0")),
    # Its last answer took long: it takes its turns among others like it.
    Column("slow", Boolean, nullable=False, server_default=text("false")),
    # The e-mails that were not put into a digest, in which hour.
    Column("hour_time", Timestamp),
    Column("hour_mails", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("organization_id", "receiver"),
)
Index(
    "notification_line_mail",
    notification_line.c.slow,
    notification_line.c.next_time,
    postgresql_where=text("receiver = '' and next_time is not null"),
)
Index(
    "notification_line_webhook",
    notification_line.c.slow,
    notification_line.c.next_time,
    postgresql_where=text("receiver <> '' and next_time is not null"),
)

notification = Table(
    "notification",
    metadata,
    text_column("organization_id"),
    # Computed from kind, subject and occasion.
    text_column("id"),
    text_column("kind"),
    text_column("subject_id"),
    text_column("occasion"),
    text_column("social_account_id"),
    text_column("brand_id"),
    Column("time", Timestamp, nullable=False),
    Column("facts", JSONB, nullable=False),
    Column("create_time", Timestamp, nullable=False),
    PrimaryKeyConstraint("organization_id", "id"),
)
Index("notification_age", notification.c.create_time)

# A notification, or a digest of several, on its way to one address or webhook.
delivery = Table(
    "delivery",
    metadata,
    text_column("organization_id"),
    text_column("id"),
    # Empty for a digest, which has items.
    text_column("notification_id"),
    text_column("kind"),
    text_column("receiver"),
    # Empty for a webhook.
    text_column("email"),
    text_column("name"),
    text_column("brand_id"),
    text_column("state"),
    Column("due_time", Timestamp, nullable=False),
    # Without an attempt until then it is skipped.
    Column("expire_time", Timestamp),
    count_column("attempts"),
    # How many notifications a digest joins.
    count_column("items"),
    text_column("error_reason"),
    text_column("error_message"),
    Column("create_time", Timestamp, nullable=False),
    Column("update_time", Timestamp, nullable=False),
    Column("end_time", Timestamp),
    PrimaryKeyConstraint("organization_id", "id"),
    CheckConstraint("(receiver = '') = (email <> '')", name="delivery_check"),
    CheckConstraint("(notification_id = '') = (kind = 'DIGEST')", name="delivery_check1"),
    CheckConstraint("(state in ('WAITING', 'PAUSED')) = (end_time is null)", name="delivery_check2"),
)
Index(
    "delivery_waiting",
    delivery.c.organization_id,
    delivery.c.receiver,
    delivery.c.due_time,
    delivery.c.id,
    postgresql_where=text("state = 'WAITING'"),
)
Index("delivery_page", delivery.c.organization_id, delivery.c.create_time, delivery.c.id)
Index("delivery_receiver", delivery.c.organization_id, delivery.c.receiver, delivery.c.create_time, delivery.c.id)
Index("delivery_age", delivery.c.create_time)
Index(
    "delivery_test",
    delivery.c.organization_id,
    postgresql_where=text("kind = 'TEST' and state = 'WAITING'"),
)

# The first notifications of a digest; it says how many there are in all.
digest_item = Table(
    "digest_item",
    metadata,
    text_column("organization_id"),
    text_column("delivery_id"),
    text_column("notification_id"),
    PrimaryKeyConstraint("organization_id", "delivery_id", "notification_id"),
)
