"""Notifications cost what is due: nothing reads 20,000 that wait, were sent, or belong to others."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.account_names import names_of_accounts
from publisher_service.adapters.postgres.deliveries import (
    count_waiting_tests,
    due_deliveries,
    insert_deliveries,
    insert_notifications,
    list_deliveries,
    notifications_of,
)
from publisher_service.adapters.postgres.notification_lines import (
    Room,
    claim_receivers,
    free_receiver,
    lock_receiver,
    oldest_due,
    wake_receivers,
)
from publisher_service.adapters.postgres.recipient_lists import (
    brands_of_accounts,
    find_recipient_lists,
    list_recipient_lists,
)
from publisher_service.adapters.postgres.subscriptions import find_subscriptions, share_subscriptions
from publisher_service.domain.delivery import Delivery, DeliveryFilter, delivery_of
from publisher_service.domain.notification import Notification, NotificationKind
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining

ROWS = 20_000
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GROWING = {
    "account_brand",
    "delivery",
    "digest_item",
    "notification",
    "notification_line",
    "recipient_list",
    "social_account",
    "webhook_subscription",
}
FILL = (
    """
    insert into recipient_list (organization_id, brand_id, name, time_zone, recipients, kinds, published, digest_hour,
        announced_version, version, update_time)
    select 'acme', 'b' || n, '', 'UTC', '[]', '{}', 'DIGEST', 8, 0, 1, :now from generate_series(1, :rows) n
    """,
    "insert into account_brand select 'acme', 'a' || n % 1000, 'b' || n from generate_series(1, :rows) n",
    """
    insert into webhook_subscription (organization_id, id, url, kinds, brand_ids, description, state, state_reason,
        failures, exhausted, secret, version, create_time, update_time)
    select 'org-' || n, 'w', '', '{}', '{}', '', 'ACTIVE', '', 0, 0, '', 1, cast(:now as timestamptz), :now
    from generate_series(1, :rows) n
    """,
    """
    insert into notification_line (organization_id, receiver, next_time, slow)
    select 'org-' || n, receiver, cast(:now as timestamptz) + interval '1 hour', n % 2 = 0
    from generate_series(1, :rows) n, unnest(array['', 'w']) as receiver
    """,
    """
    insert into notification (organization_id, id, kind, subject_id, occasion, social_account_id, brand_id, time, facts,
        create_time)
    select 'org-7', 'n' || n, 'POST_FAILED', 'j', n, 'a', '', cast(:now as timestamptz), '{}', :now
    from generate_series(1, :rows) n
    """,
    # Half of those of one webhook wait for later, and the others were delivered.
    """
    insert into delivery (organization_id, id, notification_id, kind, receiver, email, name, brand_id, state, due_time,
        attempts, items, error_reason, error_message, create_time, update_time, end_time)
    select 'org-7', 'd' || n, 'n' || n, 'POST_FAILED', 'w', '', '', '', s.state,
        cast(:now as timestamptz) + n * interval '1 second', 0, 0, '', '',
        cast(:now as timestamptz) + n * interval '1 second', cast(:now as timestamptz),
        case s.state when 'DELIVERED' then cast(:now as timestamptz) end
    from generate_series(1, :rows) n,
        lateral (select case when n % 2 = 0 then 'WAITING' else 'DELIVERED' end as state) s
    """,
    "insert into digest_item select 'org-7', 'g' || n, 'n' || n from generate_series(1, :rows) n",
)
DUE = "update notification_line set next_time = :now where organization_id in ('org-7', 'org-8') and receiver = 'w'"
ROOM = Room(mail=False, quick=20, slow=20, most=4)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            await tx.connection.execute(
                text(statement), {"rows": ROWS, "now": NOW} if ":now" in statement else {"rows": ROWS}
            )
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Any]:
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing=GROWING)


async def test_a_claim_reads_the_lines_that_are_due(explaining: Any) -> None:
    end = NOW + timedelta(minutes=1)
    assert await claim_receivers(explaining, ROOM, now=NOW, lease_end=end) == []
    explaining.check(1)
    await explaining._connection.execute(text(DUE), {"now": NOW})
    lines = await claim_receivers(explaining, ROOM, now=NOW, lease_end=end)
    assert sorted((line.organization_id, line.slow) for line in lines) == [("org-7", False), ("org-8", True)]
    # Each line is looked at, ranked, locked and written.
    explaining.check(8)


async def test_a_turn_reads_its_first_deliveries(explaining: Any) -> None:
    later = NOW + timedelta(days=1)
    found = await due_deliveries(explaining, [("org-7", "w"), ("org-8", "w")], most=10, now=later)
    deliveries = found["org-7", "w"]
    assert [each.id for each in deliveries] == [f"d{number}" for number in range(2, 22, 2)]
    about = await notifications_of(explaining, deliveries)
    assert all(len(each) == 1 for each in about.values())
    await find_subscriptions(explaining, found)
    explaining.check(10)


async def test_the_end_of_a_turn_finds_the_next_delivery(explaining: Any) -> None:
    key = ("org-7", "w")
    assert await lock_receiver(explaining, key)
    explaining.check(1)
    await free_receiver(explaining, key, slow=False, not_before=None)
    explaining.check(2)


async def test_a_fact_reads_who_wants_it(explaining: Any) -> None:
    await find_recipient_lists(explaining, [("acme", "b7"), ("acme", "")])
    await share_subscriptions(explaining, ["org-7", "org-9"])
    await names_of_accounts(explaining, [("acme", "a7")])
    explaining.check(2)
    brands = await brands_of_accounts(explaining, [("acme", "a7")])
    assert len(brands["acme", "a7"]) == 20
    explaining.check(20)


async def test_a_fact_is_stored_beside_all_others(explaining: Any) -> None:
    fact = Notification(
        organization_id="org-7", kind=NotificationKind.POST_FAILED, subject_id="new", occasion="1", time=NOW
    )
    assert await insert_notifications(explaining, [fact], now=NOW) == [fact]
    delivery: Delivery = delivery_of(fact, receiver="w", now=NOW)
    due = await insert_deliveries(explaining, [delivery], {("org-7", "g7"): [fact.id]})
    assert due == {("org-7", "w"): NOW}
    await wake_receivers(explaining, due)
    explaining.check(4)


async def test_a_page_reads_its_rows(explaining: Any) -> None:
    for wanted in (DeliveryFilter(organization_id="org-7"), DeliveryFilter(organization_id="org-7", receiver="w")):
        found = await list_deliveries(explaining, wanted, is_mail_on=True, before=None, limit=20)
        assert len(found) == 20
    for after in (None, "b5"):
        assert len(await list_recipient_lists(explaining, "acme", after=after, limit=20)) == 20
    explaining.check(20)


async def test_a_count_reads_what_it_counts(explaining: Any) -> None:
    assert await count_waiting_tests(explaining, "org-7") == 0
    assert await oldest_due(explaining, mail=True, now=NOW) is None
    explaining.check(1)
